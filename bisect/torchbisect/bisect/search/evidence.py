"""Values of a search over builds: the question, the answer of one build, the boundaries and the whole result."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Generic, TypeVar

from torchbisect.bisect import wording
from torchbisect.core.decode import decode
from torchbisect.core.text_enum import TextEnum
from torchbisect.core.verdict import Answer, Verdict

T = TypeVar("T")


class BuildStatus(TextEnum):
    """The status of a build in a search. Only ``GOOD`` and ``BAD`` are evidence."""

    GOOD = "good"
    BAD = "bad"
    UNTESTABLE = "untestable"

    @property
    def testable(self) -> bool:
        """True for good and bad."""
        return self is not BuildStatus.UNTESTABLE


class BoundaryKind(TextEnum):
    """The boundaries that a search looks for; one boundary is never ``BOTH``."""

    REGRESSION = "regression"
    FIX = "fix"
    BOTH = "both"


@dataclass(frozen=True)
class BuildQuestion(Generic[T]):
    """A build to ask, and its position; with ``recheck`` a second time, as the end of a boundary."""

    item: T
    position: int
    recheck: bool = False


@dataclass(frozen=True)
class BuildAnswer:
    """The answer of one build.

    Attributes:
        reason: for an untestable build a short named reason, such as ``import-failed``; else ``None``.
        detail: one line for a reader: what the build showed.
        seconds: the time the question took.
    """

    status: BuildStatus
    reason: str | None = None
    detail: str = ""
    seconds: float = 0.0

    @classmethod
    def from_verdict(cls, verdict: Verdict) -> BuildAnswer:
        """Translate a verdict: ``same`` is bad, ``none`` is good, all else is untestable and keeps its reason."""
        if verdict.answer is Answer.SAME:
            return cls(BuildStatus.BAD, None, verdict.detail, verdict.seconds)
        if verdict.answer is Answer.NONE:
            return cls(BuildStatus.GOOD, None, verdict.detail, verdict.seconds)
        fallback = "other-mismatch" if verdict.answer is Answer.OTHER else "untestable"
        return cls(BuildStatus.UNTESTABLE, verdict.reason or fallback, verdict.detail, verdict.seconds)

    def to_json(self) -> dict[str, Any]:
        """Return the form that the journal keeps."""
        return {**asdict(self), "status": self.status.value}

    @classmethod
    def from_json(cls, kept: Any) -> BuildAnswer:
        """Read the form that ``to_json`` returns; further entries are ignored. Raises ``DecodeError``."""
        return decode(cls, kept, "answer")


@dataclass(frozen=True)
class AskedBuild(Generic[T]):
    """A build with the answer to one finished question; the attributes are those of the question and the answer."""

    item: T
    status: BuildStatus
    reason: str | None = None
    detail: str = ""
    seconds: float = 0.0
    recheck: bool = False

    @classmethod
    def of(cls, item: T, answer: BuildAnswer, *, recheck: bool = False) -> AskedBuild[T]:
        """Join a build and its answer."""
        return cls(item, answer.status, answer.reason, answer.detail, answer.seconds, recheck)


@dataclass(frozen=True)
class SkippedBuild(Generic[T]):
    """A build beside a boundary that gave no evidence, and the reason."""

    item: T
    reason: str


@dataclass(frozen=True)
class Boundary(Generic[T]):
    """The place where the answer changes, between the build ``before`` and the newer build ``after``.

    Attributes:
        kind: ``REGRESSION`` (good before, bad after) or ``FIX`` (bad before, good after).
        before: the last build on the older side; ``None`` if the oldest testable build is bad (or fixed) already.
        after: the first build on the newer side; ``None`` if the newest testable build is still bad.
        between: the builds between the two, oldest first. They are untestable, or were not asked because the builds
            around them are untestable. Next to an open end: the builds beyond the last testable one.
        exact: both ends are known and no build lies between them.
        confirmed: the good end was asked a second time and gave the same answer; ``None`` if it was not asked again.
        notices: what the reader must know about this boundary.
        confidence: the probability that it is right, for a flaky repro; ``None`` where each answer is certain.
    """

    kind: BoundaryKind
    before: T | None
    after: T | None
    between: tuple[SkippedBuild[T], ...] = ()
    exact: bool = False
    confirmed: bool | None = None
    notices: tuple[str, ...] = ()
    confidence: float | None = None

    @property
    def last_good(self) -> T | None:
        """The last good build before a regression; ``None`` also for a fix."""
        return self.before if self.kind is BoundaryKind.REGRESSION else None

    @property
    def first_bad(self) -> T | None:
        """The first bad build of a regression; ``None`` also for a fix."""
        return self.after if self.kind is BoundaryKind.REGRESSION else None

    @property
    def last_bad(self) -> T | None:
        """The last bad build before a fix; ``None`` also for a regression."""
        return self.before if self.kind is BoundaryKind.FIX else None

    @property
    def first_fixed(self) -> T | None:
        """The first build with the fix; ``None`` also for a regression."""
        return self.after if self.kind is BoundaryKind.FIX else None

    @property
    def open(self) -> bool:
        """True if the search reached the oldest or the newest build and did not meet the boundary."""
        return self.before is None or self.after is None

    @property
    def sentence(self) -> str:
        """The boundary in one sentence, for a reader."""
        return wording.sentence(
            wording.REGRESSION if self.kind is BoundaryKind.REGRESSION else wording.FIX,
            None if self.before is None else str(self.before),
            None if self.after is None else str(self.after),
            [str(skipped.item) for skipped in self.between],
            exact=self.exact,
            confidence=self.confidence,
        )


@dataclass(frozen=True)
class SearchResult(Generic[T]):
    """The result of a search.

    Attributes:
        regression: the boundary where the bug came; ``None`` if it was not looked for or no bad build was met.
        fix: the boundary where the bug went; ``None`` for the same reasons.
        tested: every finished question, in the order of the answers.
        notices: what the reader must know: replaced ends, changed answers, more than one change each way.
    """

    regression: Boundary[T] | None = None
    fix: Boundary[T] | None = None
    tested: tuple[AskedBuild[T], ...] = ()
    notices: tuple[str, ...] = ()

    def boundary(self, kind: BoundaryKind) -> Boundary[T] | None:
        """Return the regression or the fix."""
        return self.regression if kind is BoundaryKind.REGRESSION else self.fix
