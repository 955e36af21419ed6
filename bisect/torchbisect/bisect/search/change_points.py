"""Tell one large step from a drift of many small ones, in a number measured on builds from old to new.

A search for the build where a ratio crosses a threshold finds one also where nothing happened there: where the number
grew a little with each build. So the asked builds are cut into runs of equal level, and the largest step between two
levels is compared with the whole change.

The cuts are those of optimal partitioning: the least squares, plus a penalty for each cut. A search asks some ten
builds, so the exact dynamic program is twenty lines. The library for this, ruptures, would bring NumPy and SciPy, and
those a NumPy that torch before 2.3 cannot use.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from torchbisect.core.text_enum import TextEnum

#: The share of the whole change from which on one step is the change.
ONE_STEP = 0.75


class Shape(TextEnum):
    """The shape of a change: no step, one that is nearly all of it, or several."""

    FLAT = "flat"
    STEP = "step"
    DRIFT = "drift"


@dataclass(frozen=True)
class Change:
    """The shape of a change over builds.

    Attributes:
        positions: the first position of each new level, up to the one farthest from the first: what a later build
            takes back is another change.
        largest: the position of the largest step; ``None`` if there is none.
        share: the largest step as a share of the change from the first level to the farthest; 0 if there is none.
    """

    shape: Shape
    positions: tuple[int, ...] = ()
    largest: int | None = None
    share: float = 0.0


def describe_change(ratios: Sequence[float], noise: float) -> Change:
    """Return the shape of a change.

    >>> describe_change([1.0, 1.01, 0.99, 1.3, 1.31], 0.01)
    Change(shape=<Shape.STEP: 'step'>, positions=(3,), largest=3, share=1.0)
    >>> describe_change([1.0, 1.01, 1.3, 1.31, 1.02, 1.01], 0.01).positions  # and then it was fixed
    (2,)
    >>> describe_change([1.0, 1.1, 1.2, 1.3, 1.4], 0.01).shape
    <Shape.DRIFT: 'drift'>

    Args:
        ratios: positive numbers, from the oldest build to the newest.
        noise: the standard error of their logarithms.
    """
    levels = [math.log(ratio) for ratio in ratios]
    positions = change_points(levels, noise)
    if not positions:
        return Change(Shape.FLAT)
    means = _means(levels, positions)
    farthest = max(range(1, len(means)), key=lambda number: abs(means[number] - means[0]))
    positions, whole = positions[:farthest], means[farthest] - means[0]
    steps = [later - earlier for earlier, later in itertools.pairwise(means[: farthest + 1])]
    # The largest step in the direction of the whole change.
    number, step = max(enumerate(steps), key=lambda item: math.copysign(item[1], item[1] * whole))
    share = min(step / whole, 1.0) if whole else 0.0
    shape = Shape.STEP if len(steps) == 1 or share >= ONE_STEP else Shape.DRIFT
    return Change(shape, positions, positions[number], round(share, 6))


def change_points(values: Sequence[float], noise: float) -> tuple[int, ...]:
    """Return the first position of each level after the first one, by optimal partitioning.

    A cut costs four times the logarithm of the number of values, in units of the noise's variance.
    """
    count, scale = len(values), max(noise, 1e-9) ** 2
    penalty = 4 * math.log(max(count, 2))
    sums, squares = [0.0], [0.0]
    for value in values:
        sums.append(sums[-1] + value)
        squares.append(squares[-1] + value * value)

    def cost(start: int, end: int) -> float:
        total = sums[end] - sums[start]
        return max(0.0, squares[end] - squares[start] - total * total / (end - start)) / scale

    best, cut = [-penalty], [0]
    for end in range(1, count + 1):
        price, start = min((best[start] + cost(start, end) + penalty, start) for start in range(end))
        best.append(price)
        cut.append(start)
    found, end = [], count
    while end > 0 and cut[end] > 0:
        end = cut[end]
        found.append(end)
    return tuple(reversed(found))


def _means(values: Sequence[float], positions: Sequence[int]) -> list[float]:
    ends = [0, *positions, len(values)]
    return [sum(values[start:end]) / (end - start) for start, end in itertools.pairwise(ends)]
