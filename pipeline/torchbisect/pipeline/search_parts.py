"""The parts of a report that a search over builds or commits gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchbisect.bisect.search.evidence import AskedBuild, Boundary, BoundaryKind, SearchResult
from torchbisect.bisect.sources.history import PYTORCH, Commit
from torchbisect.core.build import Build
from torchbisect.pipeline.stages.bisect import Level
from torchbisect.pipeline.stages.commits import BoundaryCommits
from torchbisect.reports.model.search_results import (
    BisectReport,
    BuildVerdict,
    CommitProof,
    Fix,
    Regression,
    SkippedBuild,
    SuspectCommit,
)

#: The commits that a report names; a day of nightlies has many more, and the compare link lists them all.
MOST_SUSPECTS = 5


def bisect_part(levels: Sequence[Level]) -> BisectReport:
    """Return the results of the searches, from the coarsest channel to the finest."""
    first = levels[0]
    regression, fix = _finest(levels, BoundaryKind.REGRESSION), _finest(levels, BoundaryKind.FIX)
    return BisectReport(
        regression=None if regression is None else _regression(*regression),
        fix=None if fix is None else _fix(*fix),
        tested=tuple(_tested(one) for level in levels for one in level.result.tested),
        notices=_all_notices(levels),
        left_out=tuple(SkippedBuild(one.version, one.reason) for one in first.listing.left_out),
        listed=tuple(build.name for build in first.listing.builds),
        channel=levels[-1].channel.value,
    )


def commit_fields(found: BoundaryCommits) -> dict[str, Any]:
    """Return the fields of a boundary that the commits between its ends add."""
    culprit = found.commit
    suspects = [_suspect(one.commit, one.reasons) for one in found.suspects[:MOST_SUSPECTS]]
    if culprit is not None:
        if found.culprit.commit is None:
            reason = "its change alone makes a build with the bug pass"
        else:
            means = "Python files laid over the older build" if found.how == "Python" else found.how
            reason = f"the answer changes with this commit's {means}"
        suspects = [_suspect(culprit, (reason,)), *(one for one in suspects if one.commit != culprit.sha)]
    return {
        "compare": found.span.compare,
        "suspects": tuple(suspects),
        "commit": culprit.sha if culprit is not None else None,
        "proofs": tuple(
            CommitProof(one.commit.sha, one.build.name, one.reverted, one.passes, one.why_not) for one in found.proofs
        ),
    }


def _finest(levels: Sequence[Level], kind: BoundaryKind) -> tuple[Boundary[Build], Level] | None:
    """Return the boundary in the finest channel that has it."""
    for level in reversed(levels):
        boundary = level.boundary(kind)
        if boundary is not None:
            return boundary, level
    return None


def _regression(boundary: Boundary[Build], level: Level) -> Regression:
    return Regression(_name(boundary.before), _name(boundary.after), **_shared_fields(boundary, level))


def _fix(boundary: Boundary[Build], level: Level) -> Fix:
    return Fix(_name(boundary.before), _name(boundary.after), **_shared_fields(boundary, level))


def _shared_fields(boundary: Boundary[Build], level: Level) -> dict[str, Any]:
    """Return the fields that both kinds of boundary have."""
    between, skipped = _inside(boundary, level.result)
    return {
        "between": between,
        "skipped": skipped,
        "exact": boundary.exact,
        "words": boundary.sentence,
        "confidence": boundary.confidence,
    }


def _inside(boundary: Boundary[Build], result: SearchResult[Build]) -> tuple[tuple[str, ...], tuple[SkippedBuild, ...]]:
    between = tuple(skipped.item.name for skipped in boundary.between)
    skipped = {one.item.name: one.reason for one in boundary.between}
    skipped.update({one.item.name: one.reason or "" for one in result.tested if not one.status.testable})
    return between, tuple(SkippedBuild(name, reason) for name, reason in skipped.items())


def _tested(one: AskedBuild[Build]) -> BuildVerdict:
    return BuildVerdict(one.item.name, one.status.value, one.reason, round(one.seconds, 2), one.detail)


def _all_notices(levels: Sequence[Level]) -> tuple[str, ...]:
    notices: list[str] = []
    for level in levels:
        notices += level.result.notices
        for boundary in (level.result.regression, level.result.fix):
            notices += boundary.notices if boundary else ()
    if len(levels) > 1:
        boundaries = (levels[0].result.regression, levels[0].result.fix)
        notices += [
            f"among {levels[0].channel}s: {boundary.sentence}" for boundary in boundaries if boundary is not None
        ]
    return tuple(dict.fromkeys(notices))


def _suspect(commit: Commit, reasons: tuple[str, ...]) -> SuspectCommit:
    return SuspectCommit(commit.sha, commit.subject, f"{PYTORCH}/commit/{commit.sha}", reasons)


def _name(build: Build | None) -> str | None:
    return None if build is None else build.name
