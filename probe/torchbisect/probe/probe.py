"""The one question: does this script, on this torch, with these settings, still show this mismatch?"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from types import TracebackType
from typing import Any, TypeVar

from torchbisect.containers.environment import Environment
from torchbisect.core.errors import DiskFull
from torchbisect.core.repro import Repro, Settings, fingerprint
from torchbisect.core.trace import Trace
from torchbisect.core.verdict import Answer, Verdict
from torchbisect.core.version import __version__
from torchbisect.probe.agent_client import Agent, Limits
from torchbisect.probe.journal import Journal
from torchbisect.probe.judge.classify import Mismatch, Spot, find_mismatch, find_untestable, settled
from torchbisect.probe.judge.environment_faults import Untestable, ended_badly
from torchbisect.probe.judge.false_positive_checks import (
    EMULATE,
    ENDINGS,
    PATIENCE,
    SANE,
    backend_of,
    machine_is_busy,
    may_be_rounding,
)
from torchbisect.probe.judge.matching import explain
from torchbisect.probe.judge.observation import Observation
from torchbisect.probe.judge.slowness import RUN_TIME, Bounds, slowness_of
from torchbisect.probe.local_modules import identity
from torchbisect.probe.question import Question

_T = TypeVar("_T")
_TIMED_AGAIN = 2


@dataclass
class _Trust:
    """Whether only fresh processes are believed any more, in all the probes that share this."""

    fresh_only: bool = False


class Probe:
    """Answers questions about scripts on one environment, and keeps every answer in a journal.

    A probe is used from one thread at a time; several probes may share a journal.

    Attributes:
        asked: how many questions were run here; those that the journal answered are not among them.

    Args:
        environment: where scripts run.
        journal: asked first, and told every answer that will be the same the next time.
        limits: of every run.
        repeat: how often each ask is made; answers that disagree are ``untestable``, reason ``flaky``.
        scope: whatever else decides how a script runs here and is not in the environment's facts: packages
            installed beside torch, a container's image.
        bounds: on time and recompiles, for scripts that are right but slow.
        check_every: after so many answers one is held against that of a fresh process; 0 for never.
        agent: one of this environment that is warm already; it is used, and not ended.
        notify: hears in a line what a user should know of how the answers were come by.
    """

    def __init__(
        self,
        environment: Environment,
        journal: Journal,
        limits: Limits | None = None,
        *,
        repeat: int = 1,
        scope: str = "",
        bounds: Bounds | None = None,
        check_every: int = 100,
        agent: Agent | None = None,
        notify: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.environment = environment
        self.journal = journal
        self.limits = limits or Limits()
        self.repeat = max(1, repeat)
        self.asked = 0
        self._scope = scope
        self._bounds = bounds or Bounds()
        self._notify = notify
        self._check_every = check_every
        self._unchecked = 0
        self._trust = _Trust()
        self._lent = agent
        self._agent = agent
        if agent is not None:
            agent.limits = self.limits

    @property
    def compares_eager(self) -> bool:
        """True: each script runs without and with ``torch.compile``."""
        return True

    @property
    def runs_are_cheap(self) -> bool:
        """True: a run is a fork of a process that has imported torch."""
        return True

    @property
    def subject(self) -> str:
        """A phrase for the user that names what is run."""
        return "the script with and without torch.compile"

    @property
    def pass_summary(self) -> str:
        """A phrase for the user that says what was seen where nothing is wrong."""
        return "compiled agrees with eager"

    def __enter__(self) -> Probe:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, frames: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the agent; the next question starts another one."""
        agent, self._agent = self._agent, None
        if agent is not None and agent is not self._lent:
            agent.close()

    def clone(self) -> Probe:
        """Another probe with the same journal, for another thread; from a doubt of either on none is trusted."""
        other = Probe(
            self.environment,
            self.journal,
            self.limits,
            repeat=self.repeat,
            scope=self._scope,
            bounds=self._bounds,
            check_every=self._check_every,
            notify=self._notify,
        )
        other._trust = self._trust
        return other

    def start(self) -> None:
        """Start the agent. Raises ``AgentFailed`` if the environment's Python can't run it."""
        self._started().start()

    @property
    def answered_from_journal(self) -> int:
        """How many answers the journal had."""
        return self.journal.answered

    # Questions ------------------------------------------------------------------------------------------------------

    def observe(self, repro: Repro, settings: Settings | None = None) -> Observation:
        """Both runs of a script, side by side.

        Raises:
            DiskFull: there is no room to run it.
        """
        settings = settings or Settings()
        key = self._key("observe", repro, settings)
        kept = self.journal.get(key)
        if kept is not None:
            return Observation.from_json(kept)
        observation = self._run(repro, settings)
        trouble = find_untestable(observation)
        if trouble is None or not trouble.passing:
            self.journal.put(key, asdict(observation))
        return observation

    def untestable(self, repro: Repro, settings: Settings | None = None) -> Untestable | None:
        """Why a script is no evidence here, or ``None`` if it is."""
        return self._look(self.observe(repro, settings), repro, settings or Settings())[0]

    def mismatch(self, repro: Repro, settings: Settings | None = None) -> Mismatch | None:
        """What a script shows; ``None`` if the runs agree or if ``trouble`` has something to say."""
        return self._look(self.observe(repro, settings), repro, settings or Settings())[1]

    def succeeds_in_eager(self, repro: Repro, settings: Settings | None = None) -> bool:
        """Whether a script comes to its end without ``torch.compile``."""
        return not ended_badly(self.observe(repro, settings).eager)

    def ask(self, question: Question) -> Verdict:
        """Whether a script still shows a mismatch.

        Raises:
            DiskFull: there is no room to run it.
        """
        key = self._question_key("ask", question, str(question.strictness), self.repeat)
        kept = self.journal.get(key)
        if kept is not None:
            return Verdict(**{**kept, "answer": Answer(kept["answer"])})
        started = time.monotonic()
        verdict, passing = self._ask_repeatedly(question)
        verdict = Verdict(verdict.answer, verdict.reason, verdict.detail, round(time.monotonic() - started, 3))
        if not passing:
            verdict = self._checked(verdict, question)
            self.journal.put(key, {**asdict(verdict), "answer": str(verdict.answer)})
        return verdict

    def ask_once(self, question: Question) -> Verdict:
        """What one more run shows: never from the journal, and not kept there, for the next one may show otherwise.

        Raises:
            DiskFull: there is no room to run it.
        """
        return self._judged(self._run_for(question), question)[0]

    def noise(self, repro: Repro) -> frozenset[Spot]:
        """In what a script's eager run does not repeat itself; empty for a script that does.

        The agent leaves such places out of every observation by itself; this is to say so.
        """
        return self._kept(
            self._key("noise", repro), lambda: [list(spot) for spot in sorted(self._noise(repro))], _spots
        )

    def trace(self, repro: Repro) -> Trace:
        """What an eager run of a script did."""
        return self._kept(self._key("trace", repro), lambda: self._started().trace(repro).to_json(), Trace.from_json)

    def sanity(self, backend: str = "inductor") -> str | None:
        """Whether this environment compiles, on a backend, a small script that is known to be right.

        Returns:
            ``None`` if it does, else in a line what goes wrong: then nothing that it compiles is evidence.
        """
        trouble = self._insane(backend)
        return trouble.detail if trouble is not None else None

    def reproduction_rate(self, question: Question, times: int) -> float:
        """The share of a number of runs that show a mismatch: 1.0 for one that is always there."""
        key = self._question_key("flakiness", question, times)
        return self._kept(key, lambda: [self._share(question, times)], _first)

    def ask_in_fresh_process(self, question: Question) -> Verdict:
        """The same as ``ask``, by an agent that is started for this one question and never from the journal.

        An answer that differs from ``ask``'s says that answers of this environment's long-lived agent can't be trusted.
        """
        with self._another() as fresh:
            verdict = fresh.ask(question)
            self.asked += fresh.asked
        return verdict

    def mismatch_in_fresh_process(self, repro: Repro, settings: Settings | None = None) -> Mismatch | None:
        """The same as ``mismatch``, by an agent that is started for it and never from the journal."""
        with self._another() as fresh:
            found = fresh.mismatch(repro, settings)
            self.asked += fresh.asked
        return found

    def _another(self) -> Probe:
        """A probe of the same kind that knows nothing."""
        return Probe(self.environment, Journal(), self.limits, scope=self._scope, bounds=self._bounds, check_every=0)

    def fresh_process_agrees(self, question: Question) -> bool:
        """Whether a fresh process answers as the long-lived agent did; after a difference only fresh ones are asked."""
        if self._trust.fresh_only:
            return True
        key = self._question_key("agrees", question)
        kept = self.journal.get(key)
        if kept is None:
            forked = self.ask(question)
            kept = [str(self.ask_in_fresh_process(question).answer), str(forked.answer)]
            self.journal.put(key, kept)
        fresh, forked_answer = (Answer(text) for text in kept)
        return self._trusted(fresh, forked_answer)

    def _checked(self, verdict: Verdict, question: Question) -> Verdict:
        """Now and then hold the long-lived agent's answer against a fresh one's; from a difference on, trust none."""
        self._unchecked += 1
        if self._trust.fresh_only or not self._check_every or self._unchecked < self._check_every:
            return verdict
        self._unchecked = 0
        fresh = self.ask_in_fresh_process(question)
        return verdict if self._trusted(fresh.answer, verdict.answer) else fresh

    def _trusted(self, fresh: Answer, forked: Answer) -> bool:
        if fresh is forked:
            return True
        self._trust.fresh_only = True
        words = f"a fresh process answers {fresh} where a forked one answered {forked}"
        self._notify(f"{words}; from here on every question gets a fresh process")
        return False

    # How ------------------------------------------------------------------------------------------------------------

    def _started(self) -> Agent:
        if self._agent is None:
            self._agent = Agent(self.environment, self.limits)
        elif self._trust.fresh_only:
            self._agent.close()  # its next question starts it anew
        return self._agent

    def _run(self, repro: Repro, settings: Settings, *, finishes: bool = False, reuse: bool = False) -> Observation:
        self.asked += 1
        agent, eager_key = self._started(), self._key("eager", repro)
        timed = bool(self._bounds)
        reuse = reuse and not timed
        observation = agent.observe(
            repro, settings, eager_key=eager_key, prewarm=timed, eager_must_succeed=finishes, reuse_kernels=reuse
        )
        if observation.compiled.how == "timed-out" and observation.eager.how != "timed-out" and machine_is_busy():
            # Inductor has taken ten times as long beside other work: that is no hang.
            agent.limits = replace(self.limits, compiled_floor=PATIENCE * self.limits.compiled_floor)
            observation = agent.observe(repro, settings, eager_key=eager_key, prewarm=timed, reuse_kernels=reuse)
            agent.limits = self.limits
        trouble = find_untestable(observation)
        if trouble is not None and trouble.reason == "disk-full":
            raise DiskFull(f"{trouble.detail}: free some space, then give the same command again")
        return observation

    def _run_for(self, question: Question) -> Observation:
        return self._run(
            question.repro, question.settings, finishes=question.eager_must_succeed, reuse=question.reuse_kernels
        )

    def _ask_repeatedly(self, question: Question) -> tuple[Verdict, bool]:
        verdict, passing = self._asked_first(question)
        answers = [verdict.answer]
        while len(answers) < self.repeat and not passing:
            again, passing = self._judged(self._run_for(question), question)
            answers.append(again.answer)
            if again.answer is not verdict.answer and not passing:
                shown = sum(answer is Answer.SAME for answer in answers)
                return Verdict(Answer.UNTESTABLE, "flaky", f"shown in {shown} of {len(answers)} runs"), False
        return verdict, passing

    def _asked_first(self, question: Question) -> tuple[Verdict, bool]:
        repro, settings = question.repro, question.settings
        kept = self.journal.get(self._key("observe", repro, settings))
        return self._judged(Observation.from_json(kept) if kept is not None else self._run_for(question), question)

    def _judged(self, observation: Observation, question: Question) -> tuple[Verdict, bool]:
        """The verdict on an observation, and whether it may be another one the next time."""
        trouble, found = self._look(observation, question.repro, question.settings)
        signature, strictness = question.signature, question.strictness
        if trouble is not None:
            if trouble.reason == "fails-in-eager" and settled(observation, signature, question.repro.source):
                return Verdict(Answer.NONE, detail="compiled fails as eager does, which it did not"), False
            return Verdict(Answer.UNTESTABLE, trouble.reason, trouble.detail), trouble.passing
        if found is None:
            return Verdict(Answer.NONE, detail=self.pass_summary), False
        if found.shows(signature, strictness):
            return Verdict(Answer.SAME, detail=found.summary), False
        detail = f"{found.summary} [{explain(signature, found.signature, strictness)}]"
        return Verdict(Answer.OTHER, str(found.kind), detail), False

    def _look(
        self, observation: Observation, repro: Repro, settings: Settings
    ) -> tuple[Untestable | None, Mismatch | None]:
        """Why an observation is no evidence, or else what it shows."""
        trouble = find_untestable(observation)
        if trouble is not None:
            return trouble, None
        found = self._found(observation, repro, settings)
        if found is None or found.kind not in ENDINGS or found.signature.asks is not None:
            return None, found
        insane = self._insane(backend_of(found.signature, repro.source, settings))
        return (insane, None) if insane is not None else (None, found)

    def _slowness(self, observation: Observation, repro: Repro, settings: Settings) -> Mismatch | None:
        """What takes too long, where that was asked for; a run time only if it is so again and again."""
        found = slowness_of(observation, self._bounds) if self._bounds else None
        for _ in range(_TIMED_AGAIN):
            if found is None or found.attribute != RUN_TIME:
                break
            found = slowness_of(self._run(repro, settings), self._bounds)
        return found

    def _insane(self, backend: str) -> Untestable | None:
        repro = Repro(SANE)
        observation = self.observe(repro, Settings(backend=backend))
        trouble, found = find_untestable(observation), find_mismatch(observation, repro.source)
        if trouble is None and found is None:
            return None
        words = trouble.detail if trouble is not None else found.summary if found is not None else ""
        detail = f"this environment can't compile even a simple script: {words}"
        return Untestable("broken-environment", detail, trouble is not None and trouble.passing)

    def _found(self, observation: Observation, repro: Repro, settings: Settings) -> Mismatch | None:
        """The mismatch, unless it is but the rounding of a low precision, which PyTorch does not call a bug.

        Inductor keeps in single precision what eager rounds after every operator. Where the difference goes away once
        it rounds in the same places (``emulate_precision_casts``), it was that.
        """
        found = find_mismatch(observation, repro.source)
        if found is None:
            return self._slowness(observation, repro, settings)
        if not may_be_rounding(found, repro, settings):
            return found
        rounding = replace(settings, knobs=(*settings.knobs, (EMULATE, True)))
        again = self.observe(repro, rounding)
        # A build without that knob has run the same thing again.
        return None if find_untestable(again) is None and find_mismatch(again, repro.source) is None else found

    def _noise(self, repro: Repro) -> set[Spot]:
        self.asked += 1
        observation = self._started().repeat(repro, eager_key=self._key("eager", repro))
        return {(item.place, item.attribute) for item in observation.differences}

    def _share(self, question: Question, times: int) -> float:
        return sum(self.ask_once(question).same for _ in range(times)) / times

    def _kept(self, key: str, make: Callable[[], Any], read: Callable[[Any], _T]) -> _T:
        value = self.journal.get(key)
        if value is None:
            value = make()
            self.journal.put(key, value)
        return read(value)

    def _question_key(self, what: str, question: Question, *more: Any) -> str:
        return self._key(
            what, question.repro, question.settings, question.signature.to_json(), question.eager_must_succeed, *more
        )

    def _key(self, what: str, repro: Repro, *more: Any) -> str:
        facts, build = self.environment.facts, self.environment.build
        where = (build.version, facts.torch, facts.git_version, facts.python, facts.platform, facts.cuda, facts.triton)
        parts = [part.to_json() if isinstance(part, Settings) else part for part in more]
        how = (asdict(self.limits), asdict(self._bounds), self._trust.fresh_only)
        return fingerprint(__version__, what, where, self._scope, how, identity(repro), parts)


def _spots(value: list[list[str]]) -> frozenset[Spot]:
    return frozenset((place, attribute) for place, attribute in value)


def _first(value: list[float]) -> float:
    return float(value[0])
