"""Commits as builds: the Python of one commit over the binaries of another build, with nothing compiled.

dynamo, AOTAutograd, the decompositions, inductor and fx are Python. Where a change in them did it, the installation of
the nightly at one end, with the Python files of each commit laid over it, tells which commit. Two questions guard it:
with its own Python that installation must answer as the whole build did, and with the other end's Python it must
answer as the other end did. If the second does not hold, the cause isn't in the Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torchbisect.bisect.search.evidence import Edge, Finding, Findings, Status, Tested, Which
from torchbisect.bisect.search.find import find
from torchbisect.bisect.sources.history import Commit, History

#: The packages of a torch wheel that lie in the repository under the same names.
_PACKAGES = ("torch/", "torchgen/", "functorch/")
#: What is read at run time besides Python itself: inductor's templates, dynamo's tables.
_SUFFIXES = (".py", ".jinja", ".json")
#: Made by the build or kept out of wheels: never laid over an installation.
_NOT_LAID = ("torch/version.py", "torch/testing/_internal/generated/", "torch/csrc/", "torch/lib/")

_NATIVE_SUFFIXES = (".cpp", ".h", ".cc", ".c", ".cu", ".cuh", ".hpp", ".mm", ".yaml", ".cmake", "CMakeLists.txt")
_NATIVE = ("torch/csrc/", "aten/", "c10/", "third_party/", "cmake/", "CMakeLists.txt", "torch/lib/", "caffe2/")


def is_laid(path: str) -> bool:
    """Whether a path of the repository is a file that an installation has under the same path and can do without
    building anything."""
    return path.startswith(_PACKAGES) and path.endswith(_SUFFIXES) and not path.startswith(_NOT_LAID)


def is_native(path: str) -> bool:
    """Whether a change of this path takes a build to show."""
    return path.startswith(_NATIVE) and path.endswith(_NATIVE_SUFFIXES)


def layer(history: History, base: str, commit: str) -> dict[str, bytes | None]:
    """What turns the Python of ``base`` into that of ``commit``: each file's contents, ``None`` for one to remove."""
    history.gather(base, commit)
    return {
        path: history.read(commit, path) if there else None
        for path, there in history.changed(base, commit).items()
        if is_laid(path)
    }


@dataclass(frozen=True)
class Culprit:
    """What the search over commits came to.

    Attributes:
        edge: the commits between which the answer changes; ``None`` if this way doesn't lead there.
        why_not: in words why it doesn't; ``None`` if it does.
        findings: all that was asked.
    """

    edge: Edge[Commit] | None
    why_not: str | None
    findings: Findings[Commit]

    @property
    def commit(self) -> Commit | None:
        """The commit that did it (or mended it), if it is the only one left."""
        return self.edge.after if self.edge is not None and self.edge.exact else None


def find_culprit(
    base: Commit,
    commits: Sequence[Commit],
    ask: Callable[[Commit], Finding],
    which: Which = Which.REGRESSION,
    *,
    jobs: int = 1,
    on_answer: Callable[[Tested[Commit]], None] = lambda _: None,
) -> Culprit:
    """Which commit made the difference, by asking their Python over one installation.

    Args:
        base: the commit of the installation that is laid over: the older end's.
        commits: what came after it up to the newer end's commit, oldest first; those that change no Python of the
            installation are passed over, for with them nothing would be laid.
        ask: the answer for a commit's Python over that installation.
        which: the older end is good (a regression) or bad (a fix).
        jobs: how many commits are asked at once.
        on_answer: told of each answer.
    """
    line = [base, *with_python(commits)]
    if len(line) == 1:
        return Culprit(None, "no commit in the range changes a Python file of the installation", Findings())
    older, newer = (Status.GOOD, Status.BAD) if which is Which.REGRESSION else (Status.BAD, Status.GOOD)
    asked: dict[str, Finding] = {}

    def once(commit: Commit) -> Finding:
        if commit.sha not in asked:
            asked[commit.sha] = ask(commit)
        return asked[commit.sha]

    tested: list[Tested[Commit]] = []
    for end, commit, expected in (("its own", line[0], older), ("the newer end's", line[-1], newer)):
        finding = once(commit)
        tested.append(Tested(commit, finding.status, finding.reason, finding.detail, finding.seconds))
        on_answer(tested[-1])
        why_not = _why_not(end, commit, finding, expected)
        if why_not is not None and not (finding.status is Status.UNTESTABLE and commit is line[-1]):
            return Culprit(None, why_not, Findings(tested=tuple(tested), questions=len(tested)))

    bad, good = (len(line) - 1, 0) if which is Which.REGRESSION else (0, len(line) - 1)
    ends = {line[0].sha, line[-1].sha}
    found = find(
        line,
        once,
        bad=bad,
        good=good,
        find=which,
        jobs=jobs,
        on_answer=lambda entry: None if entry.item.sha in ends else on_answer(entry),
    )
    edge = found.regression if which is Which.REGRESSION else found.fix
    if edge is None or edge.open:
        return Culprit(None, "no commit's Python could be asked that answers as the newer end does", found)
    return Culprit(edge, None, found)


def _why_not(end: str, commit: Commit, finding: Finding, expected: Status) -> str | None:
    """What to say when an end doesn't answer as it must, or ``None`` if it does."""
    if finding.status is expected:
        return None
    if finding.status is Status.UNTESTABLE:
        return f"with {end} Python ({commit.short}) the installation can't be asked: {finding.reason}"
    if end == "its own":
        return f"with its own Python ({commit.short}) the installation answers {finding.status}, not {expected}"
    return (
        f"with {end} Python ({commit.short}) the answer is still {finding.status}: the cause is not in the Python files"
    )


def native_changes(commits: Sequence[Commit]) -> tuple[Commit, ...]:
    """The commits that change what has to be built: the ones to suspect when the cause is not in the Python."""
    return tuple(commit for commit in commits if any(is_native(path) for path in commit.files))


def with_python(commits: Sequence[Commit]) -> tuple[Commit, ...]:
    """The commits that change a file which an overlay lays."""
    return tuple(commit for commit in commits if any(is_laid(path) for path in commit.files))
