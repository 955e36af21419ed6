"""States of a known bug and their transitions: a pure function of what is known and what one more build shows.

Two rules keep a broken build from looking like a fix. A build whose health check fails changes no state. And a bug is
fixed only if the build where it was last seen shows it in the same run, so that the machine and the script are known
to show it still. An answer about an older build than the newest that counted is history and changes no state either.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass, replace

from packaging.version import Version

from torchbisect.bisect.search.evidence import BoundaryKind
from torchbisect.core.text_enum import TextEnum

#: Days without evidence after which a bug is stale.
STALE_DAYS = 30


class State(TextEnum):
    """The state of a known bug."""

    REPRODUCES = "reproduces"
    REGRESSED = "regressed"
    CHANGED = "changed"
    FLAKY = "flaky"
    UNASKABLE = "cannot-be-asked"
    STALE = "stale"
    FIXED = "fixed"


class Seen(TextEnum):
    """The answer of one build about one bug; ``SOME``: only some of the runs showed it."""

    SAME = "same"
    NONE = "none"
    OTHER = "other"
    SOME = "some"
    UNTESTABLE = "untestable"


class Control(TextEnum):
    """The answer of a build that is known to show the bug, asked in the same run."""

    NOT_ASKED = "not-asked"
    SHOWN = "shown"
    NOT_SHOWN = "not-shown"
    UNTESTABLE = "untestable"


@dataclass(frozen=True)
class Sighting:
    """The answer of one build about one bug.

    Attributes:
        build: the name of the build.
        day: the day of the question, in ISO 8601.
        seen: the answer.
        healthy: the build passed its health check.
        control: for an answer ``none``: what the last bad build showed in the same run.
        reason: the answer in one line.
        control_reason: the same for the control.
    """

    build: str
    day: str
    seen: Seen
    healthy: bool = True
    control: Control = Control.NOT_ASKED
    reason: str = ""
    control_reason: str = ""


@dataclass(frozen=True)
class Edge:
    """The place where a bug came or went: between the builds ``before`` and ``after``.

    Attributes:
        kind: ``FIX`` or ``REGRESSION``.
        exact: no build of the channel lies between the two.
        searched: the builds between were searched, or could not be; ``note`` says why not.
    """

    kind: BoundaryKind
    before: str
    after: str
    exact: bool = False
    searched: bool = False
    note: str = ""

    @property
    def words(self) -> str:
        """The edge as a person says it."""
        if self.kind is BoundaryKind.FIX:
            return f"fixed in {self.after}" if self.exact else f"fixed after {self.before}, by {self.after}"
        return f"back in {self.after}" if self.exact else f"back after {self.before}, by {self.after}"


@dataclass(frozen=True)
class Standing:
    """The knowledge about one bug.

    Attributes:
        state: its state.
        reason: the reason for the state, in one line.
        newest: the newest build that counted.
        last_bad: the newest build that showed it.
        last_good: the newest build that was seen to be without it; empty if there is none.
        edge: the last place where it came back or went.
        day: the day of the last evidence, in ISO 8601.
    """

    state: State
    reason: str
    newest: str
    last_bad: str
    last_good: str = ""
    edge: Edge | None = None
    day: str = ""

    @property
    def is_good_now(self) -> bool:
        """True if the last evidence says that the bug is not there."""
        return bool(self.last_good) and is_newer(self.last_good, self.last_bad)

    @property
    def words(self) -> str:
        """The state as a person says it: ``fixed in 2.14.0``."""
        if self.edge is not None and self.state in (State.FIXED, State.REGRESSED):
            return self.edge.words if self.state is State.FIXED else f"regressed: {self.edge.words}"
        return {
            State.REPRODUCES: f"still in {self.last_bad}",
            State.UNASKABLE: f"cannot be asked: {self.reason}",
            State.CHANGED: f"another mismatch in {self.newest}",
        }.get(self.state, str(self.state))


def is_newer(build: str, other: str) -> bool:
    """Return True if a build is newer than another one, by their versions."""
    return Version(build) > Version(other)


def needs_control(standing: Standing, seen: Seen, build: str) -> bool:
    """Return True if an answer would change the state only together with that of the last bad build."""
    return seen is Seen.NONE and is_newer(build, standing.newest) and not standing.is_good_now


def step(standing: Standing, sighting: Sighting) -> Standing:
    """Return what is known after one more build was asked."""
    if not sighting.healthy or is_newer(standing.newest, sighting.build):
        return standing
    if sighting.build == standing.newest:
        return _same_build(standing, sighting)
    if sighting.seen is Seen.UNTESTABLE:
        # No evidence: the next build that gives some decides what happened in between.
        return replace(standing, state=State.UNASKABLE, reason=sighting.reason)
    if sighting.seen is Seen.NONE:
        return _agrees(standing, sighting)
    known = replace(standing, reason=sighting.reason, newest=sighting.build, day=sighting.day)
    if sighting.seen is Seen.OTHER:
        return replace(known, state=State.CHANGED)
    if sighting.seen is Seen.SOME:
        return replace(_shown(standing, known), state=State.FLAKY)
    return _shown(standing, known)


def _same_build(standing: Standing, sighting: Sighting) -> Standing:
    """Return what is known after the newest build was asked again, or after a reported one was asked here first."""
    if standing.newest != standing.last_bad or sighting.seen is Seen.SAME:
        return standing
    if sighting.seen is Seen.SOME:
        return replace(standing, state=State.FLAKY, reason=sighting.reason)
    reason = f"torch {sighting.build}, where it was seen, does not show it here ({sighting.reason})"
    return replace(standing, state=State.UNASKABLE, reason=reason)


def _shown(standing: Standing, known: Standing) -> Standing:
    """Return what is known after the newest build showed the bug."""
    edge = standing.edge
    if standing.is_good_now:
        edge = Edge(BoundaryKind.REGRESSION, standing.last_good, known.newest)
    is_back = edge is not None and edge.kind is BoundaryKind.REGRESSION
    state = State.REGRESSED if is_back else State.REPRODUCES
    return replace(known, state=state, last_bad=known.newest, edge=edge)


def _agrees(standing: Standing, sighting: Sighting) -> Standing:
    """Return what is known after the newest build did not show the bug."""
    known = replace(standing, newest=sighting.build, day=sighting.day, reason=sighting.reason)
    if standing.is_good_now:
        return replace(known, state=State.FIXED, last_good=sighting.build)
    if sighting.control is Control.SHOWN:
        edge = Edge(BoundaryKind.FIX, standing.last_bad, sighting.build)
        return replace(known, state=State.FIXED, last_good=sighting.build, edge=edge)
    if sighting.control is Control.NOT_SHOWN:
        reason = f"torch {standing.last_bad}, where it was seen, does not show it any more ({sighting.control_reason})"
        return replace(standing, state=State.UNASKABLE, reason=reason)
    # Nothing is known of the control: the next build asks both again.
    doubt = sighting.control_reason or "it was not asked"
    return replace(standing, reason=f"agrees on {sighting.build}, but {standing.last_bad} can't confirm it: {doubt}")


def aged(standing: Standing, today: str, days: int = STALE_DAYS) -> Standing:
    """Return a bug as stale if its last evidence is older than ``days``; a fixed bug stays fixed."""
    if standing.state in (State.FIXED, State.STALE) or not standing.day:
        return standing
    age = (datetime.date.fromisoformat(today) - datetime.date.fromisoformat(standing.day)).days
    if age <= days:
        return standing
    return replace(standing, state=State.STALE, reason=f"no evidence since {standing.day}: {standing.reason}")


def with_edge(standing: Standing, edge: Edge) -> Standing:
    """Return a bug with its last edge narrowed by a search; the edge is kept if it is of another time."""
    own = standing.edge
    if own is None or own.kind is not edge.kind or is_newer(edge.after, own.after) or is_newer(own.before, edge.before):
        return standing
    return replace(standing, edge=edge)
