"""Ranges of builds in which a bug appeared or was fixed, in the form that every rendering shows."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from torchbisect.bisect import wording
from torchbisect.bisect.wording import join_names
from torchbisect.reports.model.report import (
    BisectReport,
    BuildFacts,
    BuildVerdict,
    Fix,
    Regression,
    SkippedBuild,
    SuspectCommit,
)


@dataclass(frozen=True)
class ChangeRange:
    """A change between two builds, a regression or a fix; ``before`` is the older build."""

    words: wording.BoundaryWording
    before: str | None
    after: str | None
    exact: bool
    between: tuple[str, ...]
    skipped: tuple[SkippedBuild, ...]
    remark: str | None
    compare: str | None
    suspects: tuple[SuspectCommit, ...]
    confidence: float | None = None


def ranges(bisect: BisectReport | None) -> tuple[ChangeRange, ...]:
    """Return the ranges that a search looked for: the regression, then the fix."""
    if bisect is None:
        return ()
    found = [_regression(bisect.regression)] if bisect.regression else []
    return (*found, *([_fix(bisect.fix)] if bisect.fix else []))


def _regression(found: Regression) -> ChangeRange:
    return _range(wording.REGRESSION, found.last_good, found.first_bad, found)


def _fix(found: Fix) -> ChangeRange:
    return _range(wording.FIX, found.last_bad, found.first_fixed, found)


def _range(
    side: wording.BoundaryWording, before: str | None, after: str | None, found: Regression | Fix
) -> ChangeRange:
    return ChangeRange(
        words=side,
        before=before,
        after=after,
        exact=found.exact,
        between=found.between,
        skipped=found.skipped,
        remark=found.words,
        compare=found.compare,
        suspects=found.suspects,
        confidence=found.confidence,
    )


def sentence(found: ChangeRange) -> str:
    """Describe a range in one plain sentence without markup."""
    if found.before is None and found.after is None and found.remark:
        return found.remark
    return wording.sentence(
        found.words, found.before, found.after, found.between, exact=found.exact, confidence=found.confidence
    )


def verdicts_in_order(bisect: BisectReport, builds: Mapping[str, BuildFacts]) -> list[BuildVerdict]:
    """Return the tested builds, from old to new."""
    place = {name: number for number, name in enumerate(builds_in_order(bisect, builds))}
    return sorted(bisect.tested, key=lambda row: place[row.build])


def left_out(skips: Sequence[SkippedBuild]) -> list[tuple[str, str]]:
    """Return the builds left out, with the reason; adjacent builds with one reason share an entry.

    Three or more builds in an entry are written as ``1.0.0 to 1.9.1``.
    """
    groups = []
    for reason, group in itertools.groupby(skips, key=lambda skip: skip.reason):
        names = [skip.build for skip in group]
        groups.append((join_names(names) if len(names) < 3 else f"{names[0]} to {names[-1]}", reason))
    return groups


def builds_in_order(bisect: BisectReport, builds: Mapping[str, BuildFacts]) -> list[str]:
    """Return all builds of a search, tested or not, from old to new.

    They have the channel's order. If builds of another channel were tested too, all are sorted by version: a nightly
    comes before the release that follows it.
    """
    listed, tested = dict.fromkeys(bisect.listed), [row.build for row in bisect.tested]
    if listed.keys() >= set(tested):
        return list(listed)
    return sorted({**listed, **dict.fromkeys(tested)}, key=lambda name: (_version(builds, name), name))


def _version(builds: Mapping[str, BuildFacts], name: str) -> Version:
    for candidate in (builds[name].version if name in builds else name, name):
        try:
            return Version(candidate)
        except InvalidVersion:
            continue
    return Version("0")
