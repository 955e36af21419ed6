"""Compare two builds by a measure: counts by one run each, anything else by pairs of runs until the answer is clear."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from torchbisect.core.text_enum import TextEnum
from torchbisect.probe.measure.measure import COUNTS, Measure, format_value
from torchbisect.probe.measure.paired_test import (
    CANDIDATE_MOST_PAIRS,
    CANDIDATE_REJECTING_ERROR,
    ERROR,
    Decision,
    PairedTest,
    Ratio,
    decide_exact,
    ratio_of,
)

#: Pairs after which numbers that never changed are taken to be exact.
EXACT_PAIRS = 3
_CANDIDATES = PairedTest(1.0, ERROR, CANDIDATE_MOST_PAIRS, CANDIDATE_REJECTING_ERROR)


@dataclass(frozen=True)
class Reading:
    """The figures of one run.

    Attributes:
        values: the figures by the name of their measure.
        timed: a phrase that says what was timed.
        failure: a short name of the reason why there are none; empty if there are.
        detail: the reason in one line.
        seconds: the wall time of the process.
        code: the code that inductor generated, a text for each graph, where it was asked for.
    """

    values: dict[str, float] = field(default_factory=dict, hash=False)
    timed: str = ""
    failure: str = ""
    detail: str = ""
    seconds: float = 0.0
    code: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pair:
    """A run of the reference build and one of the asked build, in the same minute."""

    reference: Reading
    asked: Reading


class MeasuredAnswer(TextEnum):
    """The answer of a measured build; only the first two are evidence."""

    WORSE = "worse"
    NOT_WORSE = "not-worse"
    UNTESTABLE = "untestable"


@dataclass(frozen=True)
class BuildMeasurement:
    """The comparison of one build with the reference build.

    Attributes:
        answer: worse than the reference by the ratio asked for, not worse, or untestable.
        reason: the named reason of an ``untestable``.
        detail: one line for a reader.
        ratio: the asked build's number over the reference's; ``None`` if there is none.
        low: the lower end of its interval.
        high: the upper end.
        pairs: the pairs of runs behind it.
        value: the median of the asked build.
        reference: the median of the reference build in the same minutes.
        timed: a phrase that says what was timed.
        counts: the compiler's counts that differ, as the reference's and the asked build's.
        exact: the numbers have no noise.
        seconds: the wall time of the longest run.
    """

    answer: MeasuredAnswer
    reason: str | None = None
    detail: str = ""
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    pairs: int = 0
    value: float | None = None
    reference: float | None = None
    timed: str = ""
    counts: dict[str, tuple[float, float]] = field(default_factory=dict, hash=False)
    exact: bool = False
    seconds: float = 0.0


class Comparison:
    """Compares one build with the reference build.

    Args:
        measure: the number that decides.
        worse_by: the ratio from which on a build is worse; below 1 for a number that should be high.
        run_pair: runs both builds once. Number 0 is the run that compiles and counts; it is in no ratio.
        test: the test of the ratios; its threshold is replaced.
        candidate: the script is a candidate of the minimizer, whose final script is measured once more. So one pair
            that repeats the first is enough for exact numbers, and fewer pairs for an answer of ``not worse``.
    """

    def __init__(
        self,
        measure: Measure,
        worse_by: float,
        run_pair: Callable[[int], Pair],
        test: PairedTest | None = None,
        *,
        candidate: bool = False,
    ) -> None:
        self._measure, self._run_pair, self._worse_by = measure, run_pair, worse_by
        given = test or (_CANDIDATES if candidate else PairedTest(1.0))
        self._test = replace(given, threshold=self._worsening(worse_by))
        self._candidate = candidate
        self._pairs: list[Pair] = []
        self._seconds = 0.0

    def _worsening(self, ratio: float) -> float:
        """Turn a ratio so that more is worse."""
        if self._worse_by >= 1:
            return ratio
        return 1 / ratio if ratio else math.inf

    def decide(self, names: tuple[str, str]) -> BuildMeasurement:
        """Return the comparison; ``names`` are those of the reference and of the asked build, for its words."""
        return replace(self._decided(names), seconds=self._seconds)

    def _decided(self, names: tuple[str, str]) -> BuildMeasurement:
        first = self._timed_pair(0)
        fault = self._fault(first, names)
        if fault is not None:
            return fault
        counts = differing_counts(first)
        if self._measure.counted:
            return self._exact_answer(first, names, counts)
        while True:
            pair = self._timed_pair(len(self._pairs) + 1)
            fault = self._fault(pair, names)
            if fault is not None:
                return fault
            self._pairs.append(pair)
            repeated = [first, pair] if self._candidate else self._pairs
            if len(self._pairs) == (1 if self._candidate else EXACT_PAIRS) and self._unchanging(repeated):
                return self._exact_answer(pair, names, counts)
            decision = self._test.decide([self._worsening(ratio) for ratio in self._ratios()])
            if decision is not Decision.MORE:
                return self._measured_answer(decision, names, counts)

    def _timed_pair(self, number: int) -> Pair:
        pair = self._run_pair(number)
        self._seconds = max(self._seconds, pair.reference.seconds, pair.asked.seconds)
        return pair

    def _value(self, reading: Reading) -> float:
        return reading.values[self._measure.text]

    def _ratios(self) -> list[float]:
        return [ratio_of(self._value(pair.asked), self._value(pair.reference)) for pair in self._pairs]

    def _unchanging(self, pairs: Sequence[Pair]) -> bool:
        """Return True if each build gave one and the same number in every run."""
        sides = [self._value(pair.reference) for pair in pairs], [self._value(pair.asked) for pair in pairs]
        return all(len(set(side)) == 1 for side in sides)

    def _fault(self, pair: Pair, names: tuple[str, str]) -> BuildMeasurement | None:
        """Return the reason why a pair is no evidence, the reference's first; ``None`` if it is evidence."""
        for side, name, reading in (("-on-reference", names[0], pair.reference), ("", names[1], pair.asked)):
            if reading.failure:
                return _untestable(reading.failure + side, f"torch {name}: {reading.detail}")
            value = reading.values.get(self._measure.text)
            if value is None:
                return _untestable("not-measured" + side, f"torch {name}: {missing(self._measure)}")
            if not math.isfinite(value) or (value < 0 and not self._measure.counted):
                return _untestable("not-measured" + side, f"torch {name}: {self._measure.text} is {value}")
        if self._measure.name in ("time", "cpu-time") and pair.reference.timed != pair.asked.timed:
            words = f"torch {names[0]} timed {pair.reference.timed}, torch {names[1]} {pair.asked.timed}"
            return _untestable("measured-differently", words)
        return None

    def _exact_answer(
        self, pair: Pair, names: tuple[str, str], counts: dict[str, tuple[float, float]]
    ) -> BuildMeasurement:
        asked, reference = self._value(pair.asked), self._value(pair.reference)
        ratio = ratio_of(asked, reference)
        decision = decide_exact(self._worsening(ratio), self._test.threshold)
        unit = self._measure.unit
        values = f"{format_value(asked, unit)} where torch {names[0]} has {format_value(reference, unit)}"
        return BuildMeasurement(
            MeasuredAnswer(decision.value),
            None,
            f"{self._measure.text}: {values}" + _in_words(counts, self._measure.text),
            ratio,
            ratio,
            ratio,
            max(1, len(self._pairs)),
            asked,
            reference,
            pair.asked.timed,
            counts,
            True,
        )

    def _measured_answer(
        self, decision: Decision, names: tuple[str, str], counts: dict[str, tuple[float, float]]
    ) -> BuildMeasurement:
        ratio = Ratio.of(self._ratios())
        said = f"{self._measure.text} is {ratio.words} times that of torch {names[0]}, {len(self._pairs)} pairs"
        said += _in_words(counts, self._measure.text)
        if decision is Decision.UNDECIDED:
            answer, reason = MeasuredAnswer.UNTESTABLE, "too-close"
            said = f"{said}: too close to {self._worse_by:g} for these runs to tell"
        else:
            answer, reason = MeasuredAnswer(decision.value), None
        return BuildMeasurement(
            answer,
            reason,
            said,
            ratio.value,
            ratio.low,
            ratio.high,
            len(self._pairs),
            statistics.median(self._value(pair.asked) for pair in self._pairs),
            statistics.median(self._value(pair.reference) for pair in self._pairs),
            self._pairs[-1].asked.timed,
            counts,
        )


def differing_counts(pair: Pair) -> dict[str, tuple[float, float]]:
    """Return the compiler's counts that differ between the two builds."""
    return {
        name: (pair.reference.values[name], pair.asked.values[name])
        for name in COUNTS
        if name in pair.reference.values
        and name in pair.asked.values
        and pair.reference.values[name] != pair.asked.values[name]
    }


def missing(measure: Measure) -> str:
    """Say why a run has no number, and what to do."""
    if measure.printed:
        return f"the script printed no line {measure.name}=NUMBER"
    if measure.name == "kernel-count":
        return "inductor made no kernel; name a script that calls a compiled function"
    return f"there is no {measure.text}: the script calls no compiled function"


def _untestable(reason: str, detail: str) -> BuildMeasurement:
    return BuildMeasurement(MeasuredAnswer.UNTESTABLE, reason, detail)


def _in_words(counts: dict[str, tuple[float, float]], told: str) -> str:
    """Return what the counts add to an answer: ``; kernel-count 7 where it has 3``."""
    return "".join(
        f"; {name} {asked:g} where it has {reference:g}" for name, (reference, asked) in counts.items() if name != told
    )
