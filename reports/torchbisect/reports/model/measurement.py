"""Results of a measured search: the part ``measurement`` of ``report.json``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_BARS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class CountChange:
    """A count of the compiler that differs between the reference build and another one."""

    name: str
    reference: float
    value: float


@dataclass(frozen=True)
class MeasuredBuild:
    """The comparison of a build with the reference build, in the same minutes on the same machine.

    Attributes:
        build: its name.
        answer: ``worse`` than the reference by the ratio asked for, ``not-worse``, or ``untestable``.
        ratio: the median over the pairs of runs of the build's number over the reference's; ``None`` if there is none.
        low: the lower end of the ratio's 95% bootstrap interval.
        high: the upper end.
        pairs: the number of pairs.
        value: the median of the build's numbers.
        reference: the median of the reference's numbers in these pairs.
        reason: the named reason of an ``untestable``.
        detail: one line in words.
        counts: the compiler's counts that differ from the reference's.
    """

    build: str
    answer: str
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    pairs: int = 0
    value: float | None = None
    reference: float | None = None
    reason: str | None = None
    detail: str = ""
    counts: tuple[CountChange, ...] = ()


@dataclass(frozen=True)
class GeneratedKernels:
    """The kernels that inductor generated for the minimal script on one build.

    Attributes:
        build: its name.
        path: the file with the generated code, relative to the report's folder.
        calls: the kernels that the code calls, in their order.
    """

    build: str
    path: str
    calls: tuple[str, ...]


@dataclass(frozen=True)
class FlagEffect:
    """A compiler flag with which the minimal script is no longer worse on the failing build.

    Attributes:
        flag: as a script sets it: ``torch._inductor.config.epilogue_fusion = False``.
        ratio: the failing build's number with the flag over the reference build's without it.
        low: the lower end of the ratio's 95% bootstrap interval.
        high: the upper end.
    """

    flag: str
    ratio: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class MeasurementReport:
    """The comparison of builds by a number.

    Attributes:
        measure: the number, as it is typed: ``time``, ``metric:loss``.
        unit: its unit, ``s`` or ``bytes``; empty for a count and for what the script prints.
        against: the name of the reference build.
        worse_by: the ratio from which on a build is worse; below 1 for a number that should be high.
        error: the probability at most that the answer of one build is wrong; 0 for exact numbers.
        how: sentences that say how it was measured.
        builds: the measured builds, from old to new; that of the reference is its comparison with itself.
        shape: ``step`` if one step is nearly all of the change, ``drift`` if several are, ``flat`` if there is none;
            ``None`` if fewer than three builds have a ratio.
        share: the largest step as a share of the whole change.
        words: the shape of the change in one sentence; empty if there is none.
        kernels: the kernels of the minimal script on the reference build and on the failing one; empty if inductor
            generated none.
        flags: compiler flags that make up for the change, the most helpful first.
    """

    measure: str
    unit: str
    against: str
    worse_by: float
    error: float = 0.0
    how: tuple[str, ...] = ()
    builds: tuple[MeasuredBuild, ...] = ()
    shape: str | None = None
    share: float = 0.0
    words: str = ""
    kernels: tuple[GeneratedKernels, ...] = ()
    flags: tuple[FlagEffect, ...] = ()

    @property
    def with_ratio(self) -> tuple[MeasuredBuild, ...]:
        """The builds that have a finite ratio, from old to new."""
        return tuple(row for row in self.builds if row.ratio is not None and math.isfinite(row.ratio))


def sparkline(values: Sequence[float]) -> str:
    """Draw numbers as a line of blocks, from the smallest to the largest.

    >>> sparkline([1.0, 1.0, 1.15, 1.3])
    '▁▁▅█'
    """
    if not values:
        return ""
    low, high = min(values), max(values)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(_BARS[round((value - low) * scale)] for value in values)
