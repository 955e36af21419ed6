"""Geometry of the chart of a measured search: the ratio of each build to the reference, with its interval."""

from __future__ import annotations

from dataclasses import dataclass

from torchbisect.reports.model.measurement import MeasuredBuild, MeasurementReport
from torchbisect.reports.render.charts import Tick

_LEFT, _TOP, _HIGH, _BELOW = 64.0, 16.0, 180.0, 84.0
_STEP = 64.0
_KINDS = {"worse": "bad", "not-worse": "good"}


@dataclass(frozen=True)
class Point:
    """A build: the middle of its interval at ``x``, the interval's ends, and the corner of the mark at its ratio."""

    x: float
    left: float
    top: float
    low: float
    high: float
    kind: str
    label: str
    title: str


@dataclass(frozen=True)
class RatioChart:
    """The ratios of the builds from old to new; ``threshold`` is the height of the ratio that was asked for."""

    width: float
    height: float
    right: float
    threshold: float
    threshold_label: str
    points: tuple[Point, ...]
    up: tuple[Tick, ...]


def ratio_chart(found: MeasurementReport) -> RatioChart | None:
    """Lay out the builds that have a ratio; ``None`` if none has."""
    rows = found.with_ratio
    if not rows:
        return None
    numbers = [1.0, found.worse_by, *(number for row in rows for number in _ends(row))]
    low, high = min(numbers), max(numbers)
    margin = 0.08 * (high - low) or 0.1
    low, high = max(0.0, low - margin), high + margin

    def height(ratio: float) -> float:
        return round(_TOP + _HIGH * (high - ratio) / (high - low), 1)

    points = tuple(
        Point(
            x=_LEFT + 36 + _STEP * number,
            left=_LEFT + 28 + _STEP * number,
            top=round(height(ratio) - 8, 1),
            low=height(ends[0]),
            high=height(ends[1]),
            kind=_KINDS.get(row.answer, "untestable"),
            label=row.build,
            title=f"{row.build}: {ratio:.3g} ({ends[0]:.3g} to {ends[1]:.3g}), {row.pairs} pairs",
        )
        for number, row in enumerate(rows)
        for ratio, ends in [(row.ratio or 0.0, _ends(row))]
    )
    right = _LEFT + 36 + _STEP * len(rows)
    return RatioChart(
        width=right + 56,
        height=_TOP + _HIGH + _BELOW,
        right=right,
        threshold=height(found.worse_by),
        threshold_label=f"worse by {found.worse_by:g}",
        points=points,
        up=tuple(Tick(height(value), f"{value:.3g}") for value in _steps(low, high)),
    )


def _ends(row: MeasuredBuild) -> tuple[float, float]:
    ratio = row.ratio or 0.0
    return (ratio if row.low is None else row.low, ratio if row.high is None else row.high)


def _steps(low: float, high: float, wanted: int = 4) -> list[float]:
    """Return about ``wanted`` heights, evenly between the ends, and 1 where it lies between them."""
    return [1.0, *(low + (high - low) * number / wanted for number in range(1, wanted + 1))]
