"""Answer questions about one build by running scripts in its agent; every answer goes into the journal."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from torchbisect.containers.environment import Environment
from torchbisect.core.decode import decode
from torchbisect.core.errors import DiskFull
from torchbisect.core.repro import Repro, Settings, fingerprint
from torchbisect.core.trace import Trace
from torchbisect.core.verdict import Answer, Verdict
from torchbisect.core.version import __version__
from torchbisect.probe.agent_client import Agent, ToolAnswer
from torchbisect.probe.journal import Journal
from torchbisect.probe.judge.classify import Mismatch, find_mismatch, find_untestable, same_exception_in_both
from torchbisect.probe.judge.environment_faults import Untestable, ended_badly
from torchbisect.probe.judge.false_positive_checks import EMULATE_PRECISION_CASTS, may_be_rounding
from torchbisect.probe.judge.matching import explain
from torchbisect.probe.judge.observation import Observation
from torchbisect.probe.judge.sanity_check import KNOWN_GOOD_SCRIPT, SanityChecks, sanity_backend
from torchbisect.probe.judge.slowness import repeated_slowness
from torchbisect.probe.known_answers import verdict_from_json, verdict_to_json
from torchbisect.probe.limits import Limits
from torchbisect.probe.module_sources import repro_identity, siblings
from torchbisect.probe.oracle import Oracle, Question
from torchbisect.probe.plain_processes import PlainProcesses, ProcessTrust
from torchbisect.probe.probe_options import ProbeOptions
from torchbisect.probe.spare_agent import SpareAgent


class Probe:
    """Runs scripts with and without ``torch.compile`` in one environment, and compares. See ``oracle.Oracle``.

    A probe is used from one thread at a time; several probes may share a journal. Before an answer counts, a script
    known to be right must compile and agree in the environment, on the backend in question.

    Attributes:
        asked: the number of observations that were run here, and not read from the journal.

    Args:
        journal: answers from earlier runs; receives every answer that will be the same the next time.
        agent: a warm agent of this environment; it is used, and not closed.
        notify: receives a line for the user about how the answers came about.
    """

    compares_eager = True
    subject = "the script with and without torch.compile"
    pass_summary = "compiled agrees with eager"

    def __init__(
        self,
        environment: Environment,
        journal: Journal,
        options: ProbeOptions | None = None,
        *,
        agent: Agent | None = None,
        notify: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.environment = environment
        self.journal = journal
        self.options = options or ProbeOptions()
        self.asked = 0
        self._notify = notify
        self._unchecked = 0
        self._trust = ProcessTrust()
        self._sanity = SanityChecks()
        self._kernels = uuid.uuid4().hex  # names the runs that share what inductor compiled, often the same graphs
        self._spare = SpareAgent(environment, self.limits)
        self._plain = PlainProcesses(environment, self.limits)
        self._borrowed_agent = agent
        self._agent = agent
        if agent is not None:
            agent.limits = self.limits

    @property
    def limits(self) -> Limits:
        """The limits of each run."""
        return self.options.limits

    @property
    def runs_are_cheap(self) -> bool:
        """True while a run is a fork."""
        return not self._trust.plain_only

    @property
    def activity(self) -> str:
        """A phrase about the run in progress; see ``Oracle``."""
        return self._agent.activity if self._agent is not None else ""

    @property
    def repeat(self) -> int:
        """The number of runs behind each answer."""
        return max(1, self.options.repeat)

    def __enter__(self) -> Probe:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def start(self, expected: Question | None = None) -> None:
        """Start the agent, and check that an expected question's backend works. Raises ``AgentFailed``."""
        self._started_agent().start()
        if expected is not None:
            self._insane("", expected.repro, expected.settings)

    def close(self) -> None:
        """End the agent; the next question starts another one."""
        self._spare.close()
        agent, self._agent = self._agent, None
        if agent is not None and agent is not self._borrowed_agent:
            agent.close()

    def clone(self) -> Probe:
        """Return a probe with the same journal for another thread; if either distrusts warm processes, both do.

        The first clone has the fresh process that was prepared, and answers with that once it is not fresh any more.
        """
        other = Probe(self.environment, self.journal, self.options, notify=self._notify)
        other._trust, other._sanity, other._kernels = self._trust, self._sanity, self._kernels
        other._spare, self._spare = self._spare, other._spare
        return other

    def take_over(self, clone: Oracle) -> None:
        """Keep the agent of a clone; see ``Oracle``."""
        if isinstance(clone, Probe) and (agent := clone._agent or clone._spare.take_used()) is not None:
            self._spare.keep(agent)
            clone._agent = None

    def prepare_fresh_process(self, repro: Repro) -> None:
        """Start a fresh process in the background, and let it compile with the backend that a script names."""
        self._spare.prepare(sanity_backend("", (repro.source,), Settings()))

    def use_prepared_process(self) -> None:
        """Answer with the process that was prepared, if this one is cold; see ``Oracle``."""
        if self._agent is not None and self._agent is not self._borrowed_agent and self._agent.is_cold:
            self._agent = self._spare.exchange(self._agent)

    @contextmanager
    def _fresh(self) -> Iterator[Probe]:
        """Lend a probe of the same kind with an agent of its own and an empty journal."""
        with self._spare.take() as agent:
            other = Probe(self.environment, Journal(), replace(self.options, repeat=1, check_every=0), agent=agent)
            other._sanity, other._kernels = self._sanity, self._kernels
            yield other
            self.asked += other.asked

    def observe(self, repro: Repro, settings: Settings | None = None) -> Observation:
        """Return both runs of a script, side by side."""
        settings = settings or Settings()
        key = self._key("observe", repro, settings)
        known = self.journal.get(key, Observation.from_json)
        if known is not None:
            return known
        observation = self._run(repro, settings)
        untestable = find_untestable(observation)
        if untestable is None or not untestable.transient:
            self.journal.put(key, asdict(observation))
        return observation

    def untestable(self, repro: Repro, settings: Settings | None = None) -> Untestable | None:
        """Return the reason why a script is no evidence here, or ``None`` if it is."""
        return self._examine(self.observe(repro, settings), repro, settings or Settings())[0]

    def mismatch(self, repro: Repro, settings: Settings | None = None) -> Mismatch | None:
        """Return the mismatch of a script; ``None`` if the runs agree, or if the script is untestable."""
        return self._examine(self.observe(repro, settings), repro, settings or Settings())[1]

    def mismatch_in_fresh_process(self, repro: Repro, settings: Settings | None = None) -> Mismatch | None:
        """Return the mismatch of a script as a new agent shows it, never from the journal."""
        with self._fresh() as fresh:
            return fresh.mismatch(repro, settings)

    def mismatch_in_plain_process(self, repro: Repro) -> Mismatch | None:
        """Return the mismatch that a script shows under plain Python; see ``Oracle``."""
        key = self._key("plain", repro)
        if self._trust.plain_only or self.journal.get(key, partial(decode, tuple[bool])) == (False,):
            return None
        self.asked += 1
        failure = self._plain.failure(repro, self._notify)
        self.journal.put(key, [failure is not None])
        if failure is None:
            return None
        self._trust.fresh_only = self._trust.plain_only = True
        self._notify("plain python shows what a forked process does not; from here on every question gets plain python")
        self.journal.put(self._key("observe", repro, Settings()), asdict(failure))
        return self.mismatch(repro)

    def succeeds_in_eager(self, repro: Repro) -> bool:
        """Return True if a script ends well without ``torch.compile``."""
        return not ended_badly(self.observe(repro).eager)

    def run_tool(self, name: str, repro: Repro) -> ToolAnswer:
        """Return the answer of one of torch's own tools; see ``Oracle``."""
        return self._started_agent().run_tool(name, repro)

    def trace(self, repro: Repro) -> Trace:
        """Return what an eager run of a script did."""
        key = self._key("trace", repro)
        known = self.journal.get(key, Trace.from_json)
        if known is None:
            known = self._started_agent().trace(repro)
            self.journal.put(key, known.to_json())
        return known

    def sanity_check(self, backend: str = "inductor") -> Untestable | None:
        """Compile a script known to be right, once for each backend; return why that fails, or ``None``."""
        return self._sanity.result(backend, self.observe)

    def ask(self, question: Question) -> Verdict:
        """Answer whether a script still shows a mismatch; from the journal if it was asked before."""
        key = self._question_key("ask", question, str(question.strictness), self.repeat)
        if (known := self.journal.get(key, verdict_from_json)) is not None:
            return known
        started = time.monotonic()
        verdict, transient = self._ask_repeatedly(question)
        verdict = replace(verdict, seconds=round(time.monotonic() - started, 3))
        if not transient:
            verdict = self._checked_now_and_then(verdict, question)
            self.journal.put(key, verdict_to_json(verdict))
        return verdict

    def ask_once(self, question: Question) -> Verdict:
        """Answer a question by one more run, which is neither read from the journal nor kept there."""
        return self._verdict(self._run_for(question), question)[0]

    def ask_in_fresh_process(self, question: Question) -> Verdict:
        """Answer a question with a new agent; another answer than ``ask``'s means that warm ones are wrong."""
        with self._fresh() as fresh:
            return fresh.ask(question)

    def ask_again(self, question: Question, number: int) -> Verdict:
        """Answer a question by its further run of this number; from the journal if that was made before."""
        key = self._question_key("again", question, number)
        known = self.journal.get(key, verdict_from_json)
        if known is None:
            known = self.ask_once(question)
            self.journal.put(key, verdict_to_json(known))
        return known

    def fresh_process_agrees(self, question: Question) -> bool:
        """Check that a fresh process gives the cached answer. After the first difference, stop using warm processes."""
        if self._trust.fresh_only:
            return True
        key = self._question_key("agrees", question)
        known = self.journal.get(key, partial(decode, tuple[Answer, Answer]))
        if known is None:
            fresh = self.ask_in_fresh_process(question)  # first, as another thread may ask the warm one meanwhile
            known = fresh.answer, self.ask(question).answer
            self.journal.put(key, [str(answer) for answer in known])
        return self._compare_with_fresh(*known)

    def _checked_now_and_then(self, verdict: Verdict, question: Question) -> Verdict:
        """Compare every ``check_every``-th answer with that of a fresh process."""
        self._unchecked += 1
        check_every = self.options.check_every
        if self._trust.fresh_only or not check_every or self._unchecked < check_every:
            return verdict
        self._unchecked = 0
        fresh = self.ask_in_fresh_process(question)
        return verdict if self._compare_with_fresh(fresh.answer, verdict.answer) else fresh

    def _compare_with_fresh(self, fresh: Answer, warm: Answer) -> bool:
        if fresh is warm:
            return True
        self._trust.fresh_only = True
        self._notify(
            f"a fresh process answers {fresh} where a forked one answered {warm}; "
            "from here on every question gets a fresh process"
        )
        return False

    def _started_agent(self) -> Agent:
        if self._agent is None:
            self._agent = self._spare.take_used() or Agent(self.environment, self.limits)
        elif self._trust.fresh_only:
            self._agent.close()  # its next question starts it anew
        return self._agent

    def _run(self, repro: Repro, settings: Settings, question: Question | None = None) -> Observation:
        """Run a script, for a question with what that asks of its runs."""
        self.asked += 1
        must_succeed, timed = question is not None and question.eager_must_succeed, bool(self.options.bounds)
        limits = question.limits if question is not None else None
        is_sanity_check = repro.source == KNOWN_GOOD_SCRIPT  # which kernels of another script could change
        if self._trust.plain_only and not is_sanity_check:
            observation = self._plain.observe(repro, settings, eager_must_succeed=must_succeed)
        else:
            # An eager run that tighter limits cut short is none for other questions.
            tight = [] if limits is None else [asdict(limits)]
            observation = self._started_agent().observe(
                repro,
                settings,
                eager_key=self._key("eager", repro, *tight),
                prewarm=timed,
                eager_must_succeed=must_succeed,
                kernels="" if timed or is_sanity_check else self._kernels,
                limits=limits,
            )
        untestable = find_untestable(observation)
        # In a container only the script fills the disk: it is the container's own, and in memory.
        if untestable is not None and untestable.reason == "disk-full" and self.environment.local:
            raise DiskFull(f"{untestable.detail}: free some space, then give the same command again")
        return observation

    def _run_for(self, question: Question) -> Observation:
        return self._run(question.repro, question.settings, question)

    def _ask_repeatedly(self, question: Question) -> tuple[Verdict, bool]:
        """Return the verdict on ``repeat`` runs, and True if another time it may be another one."""
        repro, settings = question.repro, question.settings
        if question.runs_as_observed:
            first = self.observe(repro, settings)
        else:
            known = self.journal.get(self._key("observe", repro, settings), Observation.from_json)
            first = known or self._run_for(question)
        verdict, transient = self._verdict(first, question)
        answers = [verdict.answer]
        while len(answers) < self.repeat and not transient:
            again, transient = self._verdict(self._run_for(question), question)
            answers.append(again.answer)
            if again.answer is not verdict.answer and not transient:
                shown = sum(answer is Answer.SAME for answer in answers)
                return Verdict(Answer.UNTESTABLE, "flaky", f"shown in {shown} of {len(answers)} runs"), False
        return verdict, transient

    def _verdict(self, observation: Observation, question: Question) -> tuple[Verdict, bool]:
        """Return the verdict on an observation, and True if another time it may be another one."""
        untestable, found = self._examine(observation, question.repro, question.settings)
        signature, strictness = question.signature, question.strictness
        if untestable is not None:
            if untestable.reason != "fails-in-eager" or not same_exception_in_both(
                observation, signature, question.repro.source
            ):
                return Verdict(Answer.UNTESTABLE, untestable.reason, untestable.detail), untestable.transient
            insane = self._insane("", question.repro, question.settings)
            if insane is not None:
                return Verdict(Answer.UNTESTABLE, insane.reason, insane.detail), insane.transient
            return Verdict(Answer.NONE, detail="compiled fails as eager does, which it did not"), False
        if found is None:
            return Verdict(Answer.NONE, detail=self.pass_summary), False
        if found.includes(signature, strictness):
            return Verdict(Answer.SAME, detail=found.summary, place=found.place), False
        detail = f"{found.summary} [{explain(signature, found.signature, strictness)}]"
        return Verdict(Answer.OTHER, str(found.kind), detail), False

    def _examine(
        self, observation: Observation, repro: Repro, settings: Settings
    ) -> tuple[Untestable | None, Mismatch | None]:
        """Return why an observation is no evidence, or else the mismatch that it shows, if any."""
        untestable = find_untestable(observation)
        if untestable is not None:
            return untestable, None
        found = self._confirmed_mismatch(observation, repro, settings)
        insane = self._insane(found.signature.stage if found is not None else "", repro, settings)
        return (insane, None) if insane is not None else (None, found)

    def _insane(self, stage: str, repro: Repro, settings: Settings) -> Untestable | None:
        """Return the failure of the sanity check on the backend that an answer depends on, or ``None``."""
        sources = (repro.source, *siblings(repro.source, repro.directory).values())
        return self.sanity_check(sanity_backend(stage, sources, settings))

    def _confirmed_mismatch(self, observation: Observation, repro: Repro, settings: Settings) -> Mismatch | None:
        """Return the mismatch, unless it is only the rounding of a low precision, which PyTorch does not call a bug.

        Inductor keeps in single precision what eager rounds after every operator. If the difference disappears once
        inductor rounds in the same places (``emulate_precision_casts``), it was rounding.
        """
        found = find_mismatch(observation, repro.source)
        if found is None:
            return self._slowness(observation, repro, settings)
        if not may_be_rounding(found, repro, settings):
            return found
        rounding = replace(settings, knobs=(*settings.knobs, (EMULATE_PRECISION_CASTS, True)))
        again = self.observe(repro, rounding)
        # A build without that flag has run the same thing again.
        return None if find_untestable(again) is None and find_mismatch(again, repro.source) is None else found

    def _slowness(self, observation: Observation, repro: Repro, settings: Settings) -> Mismatch | None:
        """Return the bound that is exceeded, if any."""
        bounds = self.options.bounds
        return repeated_slowness(observation, bounds, lambda: self._run(repro, settings)) if bounds else None

    def _question_key(self, what: str, question: Question, *more: Any) -> str:
        signature = question.signature.to_json()
        return self._key(what, question.repro, question.settings, signature, question.eager_must_succeed, *more)

    def _key(self, what: str, repro: Repro, *more: Any) -> str:
        facts, build = self.environment.facts, self.environment.build
        where = (build.version, facts.torch, facts.git_version, facts.python, facts.platform, facts.cuda, facts.triton)
        parts = [part.to_json() if isinstance(part, Settings) else part for part in more]
        how = (asdict(self.limits), asdict(self.options.bounds), self._trust.fresh_only, self._trust.plain_only)
        return fingerprint(__version__, what, where, self.options.scope, how, repro_identity(repro), parts)
