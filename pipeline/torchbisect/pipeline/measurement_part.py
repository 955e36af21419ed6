"""The part of a report that a measured search gives: read from the journal, so that a continued run has all of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from torchbisect.bisect.search.change_points import Shape, describe_change
from torchbisect.core.repro import Repro
from torchbisect.probe.journal import Journal
from torchbisect.probe.measure.comparison import BuildMeasurement
from torchbisect.probe.measure.measuring_options import MeasuringOptions, kept_measurement
from torchbisect.probe.measure.paired_test import COVERAGE, ERROR, MOST_PAIRS
from torchbisect.reports.model.measurement import CountChange, MeasuredBuild, MeasurementReport

#: The half of a 95% interval in standard errors.
_HALF = 1.96
_FEWEST_BUILDS = 3


@dataclass(frozen=True)
class MeasuredSearch:
    """A measured search whose results lie in a journal.

    Attributes:
        repro: the script.
        against: the name of the reference build.
        shrunk: the script is the shrunk one.
    """

    journal: Journal
    options: MeasuringOptions
    repro: Repro
    against: str
    shrunk: bool = False

    def part(self, names: Sequence[str]) -> MeasurementReport:
        """Return the measurements of the builds with these names, from old to new; those without one are left out."""
        kept = [(name, kept_measurement(self.journal, self.options, self.repro, self.against, name)) for name in names]
        found = [(name, one) for name, one in kept if one is not None]
        rows = tuple(_row(name, one) for name, one in found)
        exact = all(one.exact for _, one in found)
        shape, share, words = _shape(rows)
        measure = self.options.measure
        return MeasurementReport(
            measure=measure.text,
            unit=measure.unit,
            against=self.against,
            worse_by=self.options.worse_by,
            error=0.0 if exact else ERROR,
            how=(
                *(("The builds were asked with the minimal script.",) if self.shrunk else ()),
                *_how(self.options, [one for _, one in found], self.against, exact=exact),
            ),
            builds=rows,
            shape=shape,
            share=round(share, 3),
            words=words,
        )


def _row(name: str, found: BuildMeasurement) -> MeasuredBuild:
    return MeasuredBuild(
        name,
        found.answer.value,
        found.ratio,
        found.low,
        found.high,
        found.pairs,
        found.value,
        found.reference,
        found.reason,
        found.detail,
        tuple(CountChange(count, before, after) for count, (before, after) in found.counts.items()),
    )


def _how(options: MeasuringOptions, found: Sequence[BuildMeasurement], against: str, *, exact: bool) -> tuple[str, ...]:
    timed = next((one.timed for one in found if one.timed), "")
    test = options.command is not None
    where = "with one thread" + (" on one core" if options.measure.depends_on_core and not test else "")
    if options.measure.counted:
        return (f"Each build was run once, in a process of its own {where}: counts are the same in every run.",)
    lines = [f"Each run is a process of its own {where}, after a first run that compiles and is in no ratio."]
    if options.measure.name in ("time", "cpu-time") and timed:
        lines.append(f"Timed: {timed}.")
    if options.measure.name == "compile-time":
        lines.append("Processor time, with that of child processes, of the calls of compiled functions that compile.")
    if options.measure.name == "memory":
        lines.append("The peak of the process after the last compile, less what the import of torch takes.")
    if exact:
        return (*lines, "The numbers are the same in every run, so they were compared as they are.")
    return (
        *lines,
        "The two builds ran in turns, in an order drawn for each pair; only runs of one pair are compared.",
        f"The ratio is the median over the pairs, with its {COVERAGE:.0%} bootstrap interval.",
        "A build is worse or not by a sequential test of the share of pairs above the ratio asked for: "
        f"at most {ERROR:.0%} of such answers are wrong. It takes at most {MOST_PAIRS} pairs.",
        f"First torch {against} was measured against itself, by the same test.",
    )


def _shape(rows: Sequence[MeasuredBuild]) -> tuple[str | None, float, str]:
    """Return the shape of the change over the builds, the share of its largest step, and a sentence."""
    usable = [row for row in rows if row.ratio is not None and 0 < row.ratio < math.inf]
    if len(usable) < _FEWEST_BUILDS:
        return None, 0.0, ""
    ratios = [row.ratio for row in usable if row.ratio is not None]
    change = describe_change(ratios, max(map(_standard_error, usable)))
    if change.largest is None:
        return str(change.shape), 0.0, "The ratio does not change from build to build by more than its noise."
    before, after = usable[change.largest - 1], usable[change.largest]
    place = f"from {before.build} to {after.build}"
    if change.shape is Shape.STEP:
        return str(change.shape), change.share, f"One step, {place}, is {change.share:.0%} of the change."
    words = f"The change has {len(change.positions)} steps; the largest, {place}, is {change.share:.0%} of it."
    return str(change.shape), change.share, words


def _standard_error(row: MeasuredBuild) -> float:
    if row.low is None or row.high is None or not 0 < row.low <= row.high < math.inf:
        return 0.0
    return max(math.log(row.high / row.low) / (2 * _HALF), 1e-3)
