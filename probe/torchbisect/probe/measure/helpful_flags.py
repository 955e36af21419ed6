"""The compiler flags with which a build is no longer worse: hints at the part of the compiler that made it so."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torchbisect.core.repro import Repro
from torchbisect.probe.localize.compiler_flags import Flag
from torchbisect.probe.measure.comparison import BuildMeasurement, MeasuredAnswer, Pair
from torchbisect.probe.measure.measuring_probe import MeasuringProbe

#: A flag that makes up for this share of the change in one pair of runs is compared with all care.
PROMISING = 0.5
#: Flags that are compared with all care, at most.
MOST_COMPARED = 5


@dataclass(frozen=True)
class HelpfulFlag:
    """A flag, and the comparison of the asked build with it and the reference build without it: not worse."""

    flag: Flag
    found: BuildMeasurement


def helpful_flags(
    probe: MeasuringProbe, repro: Repro, flags: Sequence[Flag], on_flag: Callable[[int, Flag], None]
) -> list[HelpfulFlag]:
    """Return the flags with which a script that is worse on the asked build is not, the most helpful first.

    Each that changes the generated code is tried in one pair of runs of the asked build, without it and with it. What
    makes up for half of the change there is compared with the reference build.

    Args:
        on_flag: told before each flag is tried, by its number.
    """
    ratio = probe.measurement(repro).ratio
    if not ratio or not math.isfinite(ratio) or ratio == 1:
        return []
    shares: dict[Flag, float] = {}
    for number, flag in enumerate(flags):
        on_flag(number, flag)
        shares[flag] = _share(probe.tried_flag(repro, flag), probe.measure_text, ratio)
    promising = sorted((flag for flag in flags if shares[flag] >= PROMISING), key=lambda flag: -shares[flag])
    found = []
    for flag in promising[:MOST_COMPARED]:
        with probe.with_flag(flag) as changed:
            compared = changed.measurement(repro)
        if compared.answer is MeasuredAnswer.NOT_WORSE:
            found.append(HelpfulFlag(flag, compared))
    return found


def _share(pair: Pair, measure: str, ratio: float) -> float:
    """Return the share of the change that a flag makes up for, of its logarithm; 0 without figures."""
    without, with_flag = (one.values.get(measure, 0.0) for one in (pair.reference, pair.asked))
    if without <= 0 or with_flag <= 0:
        return 0.0
    return math.log(without / with_flag) / math.log(ratio)
