"""The refine stage: narrow each boundary from releases to nightlies, and from nightlies to a commit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from packaging.version import Version

from torchbisect.bisect.search.evidence import Boundary, BoundaryKind, BuildStatus
from torchbisect.core.build import Build, Channel
from torchbisect.pipeline.session import Session
from torchbisect.pipeline.stages.bisect import Bisection, Level
from torchbisect.pipeline.stages.commits import BoundaryCommits, CommitSearch
from torchbisect.pipeline.stages.dependencies import DependencyCheck
from torchbisect.probe.oracle import Question


@dataclass(frozen=True)
class Refinement:
    """One result for the report: all searches so far, a remark, or the commits of a boundary of this kind."""

    levels: tuple[Level, ...] = ()
    remark: str | None = None
    kind: BoundaryKind | None = None
    commits: BoundaryCommits | None = None


def refine(
    session: Session, bisection: Bisection, level: Level, question: Question, component: str | None
) -> Iterator[Refinement]:
    """Narrow each boundary of the first search as far as its builds can be reached and the user asked for."""
    levels = [level]
    commits = CommitSearch(session, bisection.build_oracle, component)
    dependencies = DependencyCheck(session, bisection.build_oracle, component)
    for boundary in (level.result.regression, level.result.fix):
        if boundary is None:
            continue
        session.display.result(boundary.sentence)
        finer = _search_nightlies(session, bisection, level, boundary, question)
        if isinstance(finer, Level):
            levels.append(finer)
            yield Refinement(levels=tuple(levels))
        elif finer is not None:
            yield Refinement(remark=finer)
        finest = finer if isinstance(finer, Level) else level
        narrowed = finest.boundary(boundary.kind)
        if narrowed is None or narrowed.open or bisection.flaky:
            continue
        for notice in dependencies.notices(narrowed, question):
            session.display.result(notice)
            yield Refinement(remark=notice)
        if finest.channel is Channel.NIGHTLY and commits.wanted:
            yield _search_commits(session, commits, narrowed, question, _newest_bad(levels))


def _search_nightlies(
    session: Session, bisection: Bisection, level: Level, boundary: Boundary[Build], question: Question
) -> Level | str | None:
    """Return the result among the nightlies, the reason why there is none, or ``None`` if none was asked for."""
    if not bisection.has_finer(level, boundary):
        return None
    with session.display.stage(f"Bisect nightlies for the {boundary.kind}"):
        finer = bisection.finer(boundary, question)
        if isinstance(finer, str):
            session.display.result(finer)
    return finer


def _newest_bad(levels: Sequence[Level]) -> Build | None:
    """Return the newest build that was seen to have the bug."""
    bad = [asked.item for level in levels for asked in level.result.tested if asked.status is BuildStatus.BAD]
    return max(bad, key=lambda build: Version(build.version), default=None)


def _search_commits(
    session: Session,
    commits: CommitSearch,
    boundary: Boundary[Build],
    question: Question,
    newest_bad: Build | None,
) -> Refinement:
    with session.display.stage(f"Commits of the {boundary.kind}"):
        found = commits.between(boundary, question, newest_bad)
    session.display.result(found if isinstance(found, str) else found.sentence)
    if isinstance(found, str):
        return Refinement(remark=found)
    return Refinement(remark=found.sentence, kind=boundary.kind, commits=found)
