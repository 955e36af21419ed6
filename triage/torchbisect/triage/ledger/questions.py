"""The questions of the watch, as tasks for a worker, and how a worker answers them."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TextIO

from torchbisect.bisect.search.evidence import Boundary, BoundaryKind
from torchbisect.core.build import Build
from torchbisect.core.decode import decode
from torchbisect.core.errors import InputError, InstallFailed
from torchbisect.core.text_enum import TextEnum
from torchbisect.core.verdict import Answer, Verdict
from torchbisect.pipeline.flaky_search import MismatchRate
from torchbisect.pipeline.local_provider import LocalProvider
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.progress import Display
from torchbisect.pipeline.script import with_default_device
from torchbisect.pipeline.search_scope import named_build
from torchbisect.pipeline.session import Session
from torchbisect.pipeline.shared_resources import SharedResources
from torchbisect.pipeline.stages.bisect import Bisection
from torchbisect.probe.agent_client import AgentFailed
from torchbisect.probe.oracle import Oracle, Question
from torchbisect.triage.jobs import options_from_json, options_to_json
from torchbisect.triage.ledger.bug import KnownBug
from torchbisect.triage.ledger.health import unhealthy_reason
from torchbisect.triage.ledger.state import Edge, Seen

#: The reasons of an untestable answer that are the build's fault, and no evidence about the bug.
_BUILD_AT_FAULT = frozenset({"broken-environment", "import-failed", "infrastructure", "disk-full"})


class Asks(TextEnum):
    """The kinds of question: about a build, about a bug on it, about a bug on its last bad build, about an edge."""

    HEALTH = "health"
    BUG = "bug"
    CONTROL = "control"
    EDGE = "edge"


@dataclass(frozen=True)
class Heard:
    """The answer to a question.

    Attributes:
        seen: what the build showed; of a health check ``none`` if it passed.
        reason: the answer in one line.
        healthy: false if the build is at fault.
        seconds: the time that it took.
        edge: the narrowed edge, of a question about one.
        tested: the builds that were asked for the edge: name, status, reason.
    """

    seen: Seen
    reason: str = ""
    healthy: bool = True
    seconds: float = 0.0
    edge: Edge | None = None
    tested: tuple[tuple[str, str, str], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the answer as JSON values, for ``from_json``."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Any) -> Heard:
        """Read the value that ``to_json`` returned. Raises ``DecodeError`` for another value."""
        return decode(cls, data, "answer")


@dataclass(frozen=True)
class WatchTask:
    """A question of the watch for a worker.

    Attributes:
        name: the name of the bug, or of the build for a health check.
        build: the build to ask, as a user names it; of an edge its newer end.
        options: the options of a run; ``out`` is a folder of the question's own.
        expected: the answer that changes nothing; another one is checked in a fresh process.
        edge: the edge to narrow.
    """

    name: str
    asks: Asks
    build: str
    options: Options
    bug: KnownBug | None = None
    expected: Seen | None = None
    edge: Edge | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the task as JSON values, for ``from_json``."""
        return {
            "asks": self.asks.value,
            "name": self.name,
            "build": self.build,
            "options": options_to_json(self.options),
            "bug": self.bug and self.bug.to_json(),
            "expected": self.expected and self.expected.value,
            "edge": self.edge and asdict(self.edge),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> WatchTask:
        """Read the value that ``to_json`` returned, also after a round trip through JSON text."""
        return cls(
            data["name"],
            Asks(data["asks"]),
            data["build"],
            options_from_json(data["options"]),
            data["bug"] and KnownBug.from_json(data["bug"]),
            data["expected"] and Seen(data["expected"]),
            data["edge"] and decode(Edge, data["edge"], "edge"),
        )

    def in_folder(self, folder: Path, python: str) -> WatchTask:
        """Return the task for another machine: its folder and, unless the user named one, its Python."""
        return replace(self, options=replace(self.options, out=folder, python=self.options.python or python))


def answer(task: WatchTask, shared: SharedResources, log: TextIO) -> Heard:
    """Answer a question in this process. Raises ``TorchbisectError`` if it can't be asked at all."""
    options = task.options if task.bug is None else task.bug.applied_to(task.options)
    display = Display(stream=log)
    provider = LocalProvider(options, display, shared)
    session = Session.open(options, display, provider, display.warn)
    began = time.monotonic()
    try:
        heard = _answer(task, session)
    finally:
        session.workspace.close()
        provider.close()
    return replace(heard, seconds=round(time.monotonic() - began, 3))


def _answer(task: WatchTask, session: Session) -> Heard:
    if task.asks is Asks.EDGE:
        assert task.bug is not None
        assert task.edge is not None
        return _narrowed(session, task.bug, task.edge)
    build = named_build(session.options, session.sources, task.build)
    if task.asks is Asks.HEALTH:
        reason = unhealthy_reason(session, build)
        return Heard(Seen.NONE) if reason is None else Heard(Seen.UNTESTABLE, reason, healthy=False)
    assert task.bug is not None
    try:
        with session.failing_oracle(build) as oracle:
            if task.asks is Asks.CONTROL:
                return _control(oracle, task.bug)
            return _bug(oracle, task.bug, task.expected)
    except InstallFailed as error:
        return Heard(Seen.UNTESTABLE, f"{error.reason}: {error}", healthy=False)
    except AgentFailed as error:
        return Heard(Seen.UNTESTABLE, str(error), healthy=False)


def _questions(bug: KnownBug, device: str | None) -> list[Question]:
    found = [script.question(bug) for script in bug.scripts]
    return [one.with_source(with_default_device(one.repro.source, device)) for one in found]


def _bug(oracle: Oracle, bug: KnownBug, expected: Seen | None) -> Heard:
    """Ask every script of a bug until one shows it. The first decides; the others can only speak against it."""
    device = (bug.options or {}).get("device")
    found: list[Heard] = []
    for question in _questions(bug, device):
        heard = _script(oracle, bug, question, expected)
        if heard.seen in (Seen.SAME, Seen.SOME):
            return heard
        found.append(heard)
    other = [heard for heard in found if heard.seen is Seen.OTHER]
    return found[0] if found[0].seen is not Seen.NONE or not other else other[0]


def _script(oracle: Oracle, bug: KnownBug, question: Question, expected: Seen | None) -> Heard:
    if bug.rate < 1.0:
        return _runs(oracle, bug, question)
    heard = _heard(oracle.ask(question))
    if heard.seen not in (Seen.SAME, Seen.NONE) or heard.seen is expected:
        return heard
    fresh = _heard(oracle.ask_in_fresh_process(question))
    if fresh.seen is heard.seen:
        return heard
    if Seen.SAME in (fresh.seen, heard.seen) and Seen.NONE in (fresh.seen, heard.seen):
        return Heard(Seen.SOME, f"a fresh process answers {fresh.seen} where a warm one answered {heard.seen}")
    return fresh


def _runs(oracle: Oracle, bug: KnownBug, question: Question) -> Heard:
    """Ask a flaky script until one run shows the bug."""
    for number in range(1, bug.runs + 1):
        heard = _heard(oracle.ask_once(question))
        if heard.seen is Seen.SAME:
            return Heard(Seen.SOME, f"run {number} showed it: {heard.reason}")
        if heard.seen is not Seen.NONE:
            return heard
    return Heard(Seen.NONE, f"none of {bug.runs} runs showed it")


def _control(oracle: Oracle, bug: KnownBug) -> Heard:
    """Ask the first script of a bug anew, never from the journal."""
    question = _questions(bug, (bug.options or {}).get("device"))[0]
    return _runs(oracle, bug, question) if bug.rate < 1.0 else _heard(oracle.ask_in_fresh_process(question))


def _heard(verdict: Verdict) -> Heard:
    if verdict.answer is Answer.UNTESTABLE:
        if verdict.reason == "flaky":
            return Heard(Seen.SOME, verdict.detail)
        healthy = verdict.reason not in _BUILD_AT_FAULT
        return Heard(Seen.UNTESTABLE, f"{verdict.reason}: {verdict.detail}", healthy=healthy)
    seen = {Answer.SAME: Seen.SAME, Answer.NONE: Seen.NONE, Answer.OTHER: Seen.OTHER}[verdict.answer]
    return Heard(seen, verdict.detail)


def _narrowed(session: Session, bug: KnownBug, edge: Edge) -> Heard:
    """Search the builds between the two ends of an edge."""
    fix = edge.kind is BoundaryKind.FIX
    bad, good = (edge.before, edge.after) if fix else (edge.after, edge.before)
    options = replace(session.options, torch=None, bad=bad, good=good, find=edge.kind.value)
    session = replace(session, options=options)
    rate = MismatchRate(round(bug.rate * 100), 100)
    question = _questions(bug, (bug.options or {}).get("device"))[0]
    try:
        failing = named_build(options, session.sources, bad)
        with Bisection(session, failing, rate=rate) as bisection:
            level = bisection.search(question)
    except (InputError, InstallFailed) as error:
        return Heard(Seen.NONE, edge=replace(edge, searched=True, note=f"not narrowed: {error}"))
    tested = tuple((str(one.item), str(one.status), one.reason or one.detail) for one in level.result.tested)
    found = level.boundary(edge.kind)
    return Heard(Seen.NONE, edge=_edge(edge, found), tested=tested)


def _edge(edge: Edge, found: Boundary[Build] | None) -> Edge:
    if found is None or found.before is None or found.after is None:
        return replace(edge, searched=True, note="not narrowed: its ends answered otherwise when they were asked again")
    note = f"{len(found.between)} builds between give no evidence" if found.between else ""
    return Edge(edge.kind, str(found.before), str(found.after), found.exact, searched=True, note=note)
