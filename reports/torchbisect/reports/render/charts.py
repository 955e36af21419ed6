"""Geometry of the page's charts, which the template draws as inline SVG.

Every chart is drawn in a box with its own units, and the browser scales it. A table or a list beside it repeats its
words and figures for people who cannot see it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torchbisect.reports.model.report import ReductionStep
from torchbisect.reports.model.search_results import BisectReport, BuildFacts, builds_in_order, ranges


@dataclass(frozen=True)
class Mark:
    """A build on the timeline; ``kind`` is ``good``, ``bad``, ``untestable`` or ``untested``."""

    x: float
    kind: str
    label: str
    title: str
    named: bool


@dataclass(frozen=True)
class Band:
    """The range of builds in which something changed."""

    x: float
    width: float
    middle: float
    label: str


@dataclass(frozen=True)
class Timeline:
    """The builds from old to new."""

    width: float
    end: float
    marks: tuple[Mark, ...]
    bands: tuple[Band, ...]


def timeline(bisect: BisectReport, builds: Mapping[str, BuildFacts]) -> Timeline:
    """Lay out all builds of a search from old to new, the untested ones included."""
    rows = {row.build: row for row in bisect.tested}
    names = builds_in_order(bisect, builds)
    step = 64.0 if len(names) <= 24 else max(1050 / len(names), 7.0)
    place = {name: 40 + step * number for number, name in enumerate(names)}
    bands, ends = [], []
    for found in ranges(bisect):
        ends += [name for name in (found.before, found.after) if name in place]
        if found.before in place and found.after in place:
            left, right = sorted((place[found.before], place[found.after]))
            bands.append(Band(left, right - left, (left + right) / 2, found.words.changed))
    named = _labels_that_fit(place, [*reversed(ends), *rows, *(names if step > 40 else ())])
    marks = []
    for name, x in place.items():
        row = rows.get(name)
        kind = "untested" if row is None else row.verdict if row.verdict in ("good", "bad") else "untestable"
        detail = "not tested" if row is None else f"{kind}: {row.reason}" if row.reason else kind
        marks.append(Mark(x, kind, name, f"{name}: {detail}", name in named))
    width = 110 + step * max(len(names) - 1, 0)
    return Timeline(width, width - 54, tuple(marks), tuple(bands))


def _labels_that_fit(place: Mapping[str, float], wanted: Sequence[str]) -> set[str]:
    """Choose labels that do not overlap; earlier names in ``wanted`` win."""
    named: set[str] = set()
    for name in wanted:
        if name in place and all(abs(place[name] - place[other]) >= 24 for other in named):
            named.add(name)
    return named


@dataclass(frozen=True)
class Tick:
    """A position on an axis, and its label."""

    at: float
    label: str


@dataclass(frozen=True)
class Curve:
    """A falling step function: bytes against the number of tested scripts."""

    width: float
    height: float
    path: str
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]


_LEFT, _TOP, _WIDE, _HIGH = 64.0, 12.0, 560.0, 190.0


def curve(trajectory: Sequence[ReductionStep], candidates: int) -> Curve | None:
    """Draw the size of the best script during the reduction; ``None`` if there are fewer than two points."""
    if len(trajectory) < 2:
        return None
    most = max(candidates, max(step.candidates for step in trajectory), 1)
    top = max(max(step.bytes for step in trajectory), 1)
    points = [(_LEFT + _WIDE * step.candidates / most, _TOP + _HIGH * (1 - step.bytes / top)) for step in trajectory]
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    path += "".join(f"H{x:.1f}V{y:.1f}" for x, y in points[1:]) + f"H{_LEFT + _WIDE:.1f}"
    return Curve(
        width=_LEFT + _WIDE + 16,
        height=_TOP + _HIGH + 44,
        path=path,
        across=tuple(Tick(_LEFT + _WIDE * value / most, f"{value:g}") for value in round_steps(most)),
        up=tuple(Tick(_TOP + _HIGH * (1 - value / top), f"{value:g}") for value in round_steps(top)),
    )


def round_steps(top: float, wanted: int = 4) -> tuple[float, ...]:
    """Return about ``wanted`` round figures from 0 to ``top``, in steps of 1, 2 or 5 times a power of ten."""
    if not top > 0 or not math.isfinite(top):
        return (0.0,)
    rough = top / wanted
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    return tuple(step * number for number in range(int(top / step + 1e-9) + 1))


@dataclass(frozen=True)
class Bar:
    """A rectangle of a chart, with its label and its tooltip."""

    x: float
    y: float
    width: float
    height: float
    label: str
    title: str


def histogram(details: Mapping[str, Any]) -> tuple[Bar, ...]:
    """Draw the histogram of the errors: ``details["histogram"]`` is ``{"edges": [...], "counts": [...]}``."""
    data = details.get("histogram")
    if not isinstance(data, Mapping):
        return ()
    edges, counts = _numbers(data.get("edges")), _numbers(data.get("counts"))
    # One number needs no chart: it is among the figures.
    if sum(counts) < 2 or len(edges) != len(counts) + 1:
        return ()
    top, wide = max(*counts, 1.0), _WIDE / len(counts)
    return tuple(
        Bar(
            x=_LEFT + wide * number + 1,
            y=_TOP + _HIGH * (1 - count / top),
            width=max(wide - 2, 1.0),
            height=_HIGH * count / top,
            label=f"{edges[number]:.2g}",
            title=f"{count:g} elements differ by {edges[number]:.3g} to {edges[number + 1]:.3g}",
        )
        for number, count in enumerate(counts)
    )


def heat(details: Mapping[str, Any]) -> tuple[Bar, ...]:
    """Draw the map of the errors in a tensor: ``details["map"]``, rows of numbers from 0 (right) to 1 (most wrong).

    A bar's ``label`` is its opacity.
    """
    rows = details.get("map")
    if not isinstance(rows, (list, tuple)):
        return ()
    grid = [_numbers(row) for row in rows[:64]]
    if not grid or not grid[0] or len({len(row) for row in grid}) != 1 or len(grid[0]) > 64:
        return ()
    side = min(320 / len(grid), 560 / len(grid[0]), 40)
    return tuple(
        Bar(side * column, side * line, side, side, f"{min(max(value, 0), 1):.3f}", f"[{line}, {column}]: {value:.3g}")
        for line, row in enumerate(grid)
        for column, value in enumerate(row)
    )


def _numbers(values: Any) -> list[float]:
    """Return the values as floats; an empty list if one of them is not a finite number."""
    values = values if isinstance(values, (list, tuple)) else ()
    finite = all(isinstance(value, (int, float)) and abs(value) < 1e300 for value in values)
    return [float(value) for value in values] if finite else []
