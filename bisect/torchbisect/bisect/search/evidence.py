"""The values of a search: what one build showed, what was asked in which order, and what it comes to."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, TypeVar

from torchbisect.bisect import wording

T = TypeVar("T")


class Status(str, enum.Enum):
    """What a build is to a search. Only ``GOOD`` and ``BAD`` are evidence."""

    GOOD = "good"
    BAD = "bad"
    UNTESTABLE = "untestable"

    def __str__(self) -> str:
        return self.value

    @property
    def testable(self) -> bool:
        """Whether it tells good from bad."""
        return self is not Status.UNTESTABLE


class Which(str, enum.Enum):
    """Which edge is looked for."""

    REGRESSION = "regression"
    FIX = "fix"
    BOTH = "both"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Finding:
    """The answer to a question about one build.

    Attributes:
        status: good, bad or untestable.
        reason: for an untestable build a short named reason, ``import-failed``; else ``None``.
        detail: one line in words: what was seen.
        seconds: what it took.
    """

    status: Status
    reason: str | None = None
    detail: str = ""
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """As a journal keeps it."""
        return {**asdict(self), "status": self.status.value}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Finding:
        """What ``to_json`` made; other entries beside it are passed over."""
        return cls(Status(kept["status"]), kept["reason"], kept["detail"], kept["seconds"])


@dataclass(frozen=True)
class Tested(Generic[T]):
    """One finished question.

    Attributes:
        again: whether the build had been asked before and this was the check at the end.
    """

    item: T
    status: Status
    reason: str | None = None
    detail: str = ""
    seconds: float = 0.0
    again: bool = False


@dataclass(frozen=True)
class Skipped(Generic[T]):
    """A build inside an answer of which nothing is known, and why."""

    item: T
    reason: str


@dataclass(frozen=True)
class Edge(Generic[T]):
    """Where the answer changes: between ``before`` and ``after``, the older first.

    Attributes:
        which: ``REGRESSION`` (good before, bad after) or ``FIX`` (bad before, good after).
        before: the last build on the older side; ``None`` when it was bad already in the oldest that can be tested.
        after: the first build on the newer side; ``None`` when it is not fixed in the newest that can be tested.
        between: the builds between the two, oldest first: untestable, or not asked since all round them was
            untestable. Towards an open end: the builds beyond the last testable one.
        exact: both ends are known and no build lies between them.
        confirmed: the good end was asked again at the end and said the same; ``None`` when it was not asked again.
        notices: what the reader must know of this edge.
        confidence: how likely it is the right one, for a repro that is flaky; ``None`` where each answer is certain.
    """

    which: Which
    before: T | None
    after: T | None
    between: tuple[Skipped[T], ...] = ()
    exact: bool = False
    confirmed: bool | None = None
    notices: tuple[str, ...] = ()
    confidence: float | None = None

    @property
    def last_good(self) -> T | None:
        """The last good build before a regression; ``None`` also for a fix."""
        return self.before if self.which is Which.REGRESSION else None

    @property
    def first_bad(self) -> T | None:
        """The first bad build of a regression; ``None`` also for a fix."""
        return self.after if self.which is Which.REGRESSION else None

    @property
    def last_bad(self) -> T | None:
        """The last bad build before a fix; ``None`` also for a regression."""
        return self.before if self.which is Which.FIX else None

    @property
    def first_fixed(self) -> T | None:
        """The first build with the fix; ``None`` also for a regression."""
        return self.after if self.which is Which.FIX else None

    @property
    def open(self) -> bool:
        """Whether the search came to an end of the builds without meeting the edge."""
        return self.before is None or self.after is None

    @property
    def words(self) -> str:
        """The answer as one sentence."""
        side = wording.REGRESSION if self.which is Which.REGRESSION else wording.FIX
        return wording.sentence(
            side,
            _text(self.before),
            _text(self.after),
            [str(skipped.item) for skipped in self.between],
            exact=self.exact,
            confidence=self.confidence,
        )


def _text(item: object) -> str | None:
    return None if item is None else str(item)


@dataclass(frozen=True)
class Findings(Generic[T]):
    """What a search came to.

    Attributes:
        regression: the edge where it became bad; ``None`` if it was not looked for or no bad build was met.
        fix: the edge where it became good again; ``None`` likewise.
        tested: every finished question in the order in which it was answered.
        notices: what the reader must know: ends that slid, answers that changed, a truth that is not monotone.
        monotone: the tested builds read good, bad, good with at most one change each way.
    """

    regression: Edge[T] | None = None
    fix: Edge[T] | None = None
    tested: tuple[Tested[T], ...] = ()
    notices: tuple[str, ...] = ()
    monotone: bool = True
    questions: int = field(default=0)
