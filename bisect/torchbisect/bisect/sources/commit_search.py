"""From a pair of nightlies to the commit: the range on main, and the search over it without building anything.

Each commit's Python files are laid over the installation of the older nightly. Two questions guard the search. With its
own Python that installation must answer as the whole build did. With the newer end's Python it must answer as the
newer end did; if it does not, the cause is not in the Python files.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torchbisect.bisect.search.evidence import (
    AskedBuild,
    Boundary,
    BoundaryKind,
    BuildAnswer,
    BuildStatus,
    SearchResult,
)
from torchbisect.bisect.search.find import find_boundaries
from torchbisect.bisect.search.search_options import SearchOptions
from torchbisect.bisect.sources.history import Commit, History
from torchbisect.bisect.sources.python_files import changed_python, python_changes
from torchbisect.containers.environment import Environment, Environments, Facts
from torchbisect.core.build import Build
from torchbisect.core.errors import InputError

_AskCommit = Callable[[Commit], BuildAnswer]
_OnAnswer = Callable[[AskedBuild[Commit]], None]


@dataclass(frozen=True)
class CommitRange:
    """The commit of an older build, and the commits on main after it up to a newer build's, oldest first."""

    base: Commit
    commits: tuple[Commit, ...]

    @property
    def compare(self) -> str:
        """The address of the comparison on GitHub."""
        last = self.commits[-1].sha if self.commits else self.base.sha
        return f"https://github.com/pytorch/pytorch/compare/{self.base.sha}...{last}"


@dataclass(frozen=True)
class CommitSearchResult:
    """The result of a search over commits.

    Attributes:
        boundary: the commits between which the answer changes; ``None`` if the search found none.
        why_not: the reason in words if it found none; else ``None``.
        result: all that was asked.
    """

    boundary: Boundary[Commit] | None
    why_not: str | None
    result: SearchResult[Commit]

    @property
    def commit(self) -> Commit | None:
        """The culprit (or the fix), if it is the only commit left."""
        return self.boundary.after if self.boundary is not None and self.boundary.exact else None


def commits_between(history: History, older: Facts, newer: Facts) -> CommitRange:
    """Return the commits on main between two builds, by what was read back from the builds.

    Raise ``InputError`` if the clone lacks one of them, or they are not on one line.
    """
    ends = []
    for facts in (older, newer):
        sha = history.main_commit(facts.git_version or "")
        if sha is None:
            raise InputError(
                f"this clone of PyTorch doesn't know torch {facts.torch} (git version {facts.git_version}): "
                "fetch its branches main and nightly, or name another with --git"
            )
        ends.append(sha)
    return CommitRange(history.commit(ends[0]), history.between(ends[0], ends[1]))


@dataclass(frozen=True)
class PythonOverlay:
    """Asks commits by their Python files, laid over the installation of the range's older build.

    Attributes:
        environments: makes the copies of the installation, each for one question.
        build: the older build, whose binaries are used.
        ask: asks an environment; untestable, with no exception, if torch does not start in it.
    """

    history: History
    commits: CommitRange
    environments: Environments
    build: Build
    ask: Callable[[Environment], BuildAnswer]

    def find_culprit(
        self, kind: BoundaryKind = BoundaryKind.REGRESSION, *, jobs: int = 1, on_answer: _OnAnswer = lambda _: None
    ) -> CommitSearchResult:
        """Find the commit whose Python changes the answer; see ``find_culprit``.

        Raise ``DiskFull`` if there is no room for the copies, ``InputError`` if the clone can't give a file's contents.
        """
        return find_culprit(
            self.commits.base, self.commits.commits, self._ask_commit, kind, jobs=jobs, on_answer=on_answer
        )

    def _ask_commit(self, commit: Commit) -> BuildAnswer:
        changed = changed_python(self.history, self.commits.base.sha, commit.sha)
        with self.environments.with_overlay(self.build, changed, commit.sha) as environment:
            return self.ask(environment)


def find_culprit(
    base: Commit,
    commits: Sequence[Commit],
    ask: _AskCommit,
    kind: BoundaryKind = BoundaryKind.REGRESSION,
    *,
    jobs: int = 1,
    on_answer: _OnAnswer = lambda _: None,
) -> CommitSearchResult:
    """Find the commit whose Python changes the answer of one installation.

    Args:
        base: the commit of the installation, which is that of the older end.
        commits: the commits after it up to the newer end's, oldest first. Those that change no Python file of the
            installation are skipped, as they change nothing in it.
        ask: asks the installation with a commit's Python.
        kind: the older end is good (a regression) or bad (a fix).
        jobs: the number of commits that are asked at once.
    """
    line = [base, *python_changes(commits)]
    if len(line) == 1:
        return CommitSearchResult(
            None, "no commit in the range changes a Python file of the installation", SearchResult()
        )
    ask_once = functools.cache(ask)
    guards, why_not = _check_ends(line, ask_once, kind, on_answer)
    if why_not is not None:
        return CommitSearchResult(None, why_not, SearchResult(tested=guards))
    ends = {line[0].sha, line[-1].sha}
    return search_commits(
        line,
        ask_once,
        kind,
        "no commit's Python could be asked that answers as the newer end does",
        jobs=jobs,
        on_answer=lambda asked: None if asked.item.sha in ends else on_answer(asked),
    )


def search_commits(
    line: Sequence[Commit],
    ask: _AskCommit,
    kind: BoundaryKind,
    nothing_found: str,
    *,
    jobs: int = 1,
    on_answer: _OnAnswer = lambda _: None,
) -> CommitSearchResult:
    """Search commits, oldest first, whose first and last are known to answer differently.

    The arguments are those of ``find_culprit``; ``nothing_found`` is the reason to give if no two commits are found.
    """
    bad, good = (len(line) - 1, 0) if kind is BoundaryKind.REGRESSION else (0, len(line) - 1)
    options: SearchOptions[Commit] = SearchOptions(bad=bad, good=good, kind=kind)
    found = find_boundaries(line, ask, options, jobs=jobs, on_answer=on_answer)
    boundary = found.boundary(kind)
    if boundary is None or boundary.open:
        return CommitSearchResult(None, nothing_found, found)
    return CommitSearchResult(boundary, None, found)


def _check_ends(
    line: Sequence[Commit], ask: _AskCommit, kind: BoundaryKind, on_answer: _OnAnswer
) -> tuple[tuple[AskedBuild[Commit], ...], str | None]:
    """Ask the two ends; return their answers, and the reason if the search can't go on from them."""
    older, newer = BuildStatus.GOOD, BuildStatus.BAD
    if kind is BoundaryKind.FIX:
        older, newer = newer, older
    asked: list[AskedBuild[Commit]] = []
    for end, commit, expected in (("its own", line[0], older), ("the newer end's", line[-1], newer)):
        answer = ask(commit)
        asked.append(AskedBuild.of(commit, answer))
        on_answer(asked[-1])
        why_not = _why_not(end, commit, answer, expected)
        if why_not is not None and not (answer.status is BuildStatus.UNTESTABLE and commit is line[-1]):
            return tuple(asked), why_not
    return tuple(asked), None


def _why_not(end: str, commit: Commit, answer: BuildAnswer, expected: BuildStatus) -> str | None:
    """Return the reason if an end does not answer as it must, or ``None`` if it does."""
    if answer.status is expected:
        return None
    if answer.status is BuildStatus.UNTESTABLE:
        return f"with {end} Python ({commit.short}) the installation can't be asked: {answer.reason}"
    if end == "its own":
        return f"with its own Python ({commit.short}) the installation answers {answer.status}, not {expected}"
    return (
        f"with {end} Python ({commit.short}) the answer is still {answer.status}: the cause is not in the Python files"
    )
