"""From a pair of nightlies to the commit: the range on main, and the search over it without building anything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torchbisect.bisect.search.evidence import Finding, Tested, Which
from torchbisect.bisect.sources.commit import Culprit, find_culprit, layer
from torchbisect.bisect.sources.history import Commit, History
from torchbisect.containers.environment import Environment, Environments, Facts
from torchbisect.core.build import Build
from torchbisect.core.errors import InputError


@dataclass(frozen=True)
class CommitRange:
    """What lies on main between two builds.

    Attributes:
        base: the commit of the older build.
        commits: what came after it up to the newer build's commit, oldest first.
    """

    base: Commit
    commits: tuple[Commit, ...]

    @property
    def compare(self) -> str:
        """Where to look at it."""
        last = self.commits[-1].sha if self.commits else self.base.sha
        return f"https://github.com/pytorch/pytorch/compare/{self.base.sha}...{last}"


def commits_between(history: History, older: Facts, newer: Facts) -> CommitRange:
    """The commits on main between two builds, by what was read back from them.

    Raises:
        InputError: if the clone doesn't know one of them, or they are not on one line.
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


def by_overlay(
    history: History,
    span: CommitRange,
    maker: Environments,
    older: Build,
    ask: Callable[[Environment], Finding],
    which: Which = Which.REGRESSION,
    *,
    jobs: int = 1,
    on_answer: Callable[[Tested[Commit]], None] = lambda _: None,
) -> Culprit:
    """Which commit did it, by the Python of each laid over the older build's installation.

    Args:
        span: the range, as ``commits_between`` gives it.
        maker: makes the copies, for as long as each is asked.
        older: the older build, whose binaries are lent.
        ask: what an environment shows; it must answer untestable, and not raise, where torch doesn't start in it.
        which: the older build is good (a regression) or bad (a fix).
        jobs: how many commits are asked at once.
        on_answer: told of each answer.

    Raises:
        DiskFull: if there is no room for the copies.
        InputError: if the clone can't give a file's contents.
    """

    def ask_commit(commit: Commit) -> Finding:
        changed = layer(history, span.base.sha, commit.sha)
        with maker.overlaid(older, changed, commit.sha) as environment:
            return ask(environment)

    return find_culprit(span.base, span.commits, ask_commit, which, jobs=jobs, on_answer=on_answer)
