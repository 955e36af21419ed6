"""Answer questions about a build by measuring it beside a reference build: is it worse by the ratio that was asked for?

Before anything is compared, the reference build is measured against itself. If that has no clear answer, the noise is
larger than the effect that was asked for, and every build is ``untestable``, reason ``too-noisy``.

The candidates of the minimizer are compared with less care: the noise is not measured again, and a clear answer takes
fewer pairs. The final script is measured with all of it, by new pairs.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial

from torchbisect.containers.environment import Environment
from torchbisect.core.decode import decode
from torchbisect.core.repro import Repro, Settings, fingerprint
from torchbisect.core.verdict import Answer, MismatchKind, Verdict
from torchbisect.probe.agent.run.measured_run import BENCHMARKED
from torchbisect.probe.journal import Journal
from torchbisect.probe.judge.classify import Mismatch
from torchbisect.probe.judge.environment_faults import Untestable
from torchbisect.probe.judge.matching import Strictness
from torchbisect.probe.judge.observation import Ending, Observation
from torchbisect.probe.limits import Limits
from torchbisect.probe.localize.compiler_flags import Flag
from torchbisect.probe.measure.comparison import BuildMeasurement, Comparison, MeasuredAnswer, Pair, Reading
from torchbisect.probe.measure.measure import format_value
from torchbisect.probe.measure.measured_runs import MeasuredRuns
from torchbisect.probe.measure.measuring_options import MeasuringOptions, measured_runs, result_key
from torchbisect.probe.measure.same_reason import other_reason, signature_of
from torchbisect.probe.measure.turns import in_turns
from torchbisect.probe.oracle import Question
from torchbisect.probe.separate_runs import DEFAULT_TIMEOUT, SeparateRuns

TOO_NOISY = "too-noisy"


@dataclass(frozen=True)
class _Request:
    """A script to measure.

    Attributes:
        again: measure anew, whatever the journal has.
        limits: those of a candidate of the minimizer; ``None`` for a script that is measured with all care.
    """

    repro: Repro
    again: bool = False
    limits: Limits | None = None

    @property
    def tags(self) -> tuple[str, ...]:
        """The words that keep a candidate's lines of the journal apart from the same script's."""
        return ("candidate",) if self.limits is not None else ()


class MeasuringProbe(SeparateRuns):
    """Compares one environment with that of the reference build. See ``oracle.Oracle``.

    Every pair of runs is a line of the journal, and so is the comparison that they lead to.

    Args:
        environment: the environment that is asked about.
        reference: the environment of the reference build; it may be the same.
        on_pair: told before each pair, by its number.
        reference_runs: the runs of the reference build, which its owner closes; by default it has runs of its own.
    """

    compares_eager = False  # Two builds are compared, each with the script's own settings.
    runs_are_cheap = False  # Each answer is many runs already.
    repeat = 1  # The error rate of an answer is part of the test.
    subject = "the script on both builds in turns"

    def __init__(
        self,
        environment: Environment,
        reference: Environment,
        journal: Journal,
        options: MeasuringOptions,
        *,
        on_pair: Callable[[int], None] = lambda number: None,
        reference_runs: MeasuredRuns | None = None,
    ) -> None:
        super().__init__(environment)
        longest = options.timeout or DEFAULT_TIMEOUT
        self.limits = Limits(longest, compiled_floor=longest, compiled_cap=longest)
        self._reference_environment, self._journal, self._options = reference, journal, options
        self._on_pair = on_pair
        self._same = _is_same(environment, reference)
        self._shared = reference_runs
        self._reference = reference_runs or measured_runs(reference, options)
        self._asked = measured_runs(environment, options)
        # Runs of their own: what one with a flag compiled must not serve one without.
        self._with_flags = measured_runs(environment, options)
        self._number = 0
        self._takes_turns = False
        self._runs = self._stopped = False
        self._last = ""

    def __enter__(self) -> MeasuringProbe:
        return self

    @property
    def pass_summary(self) -> str:
        """A phrase for the measurement where nothing is worse."""
        return self._last or "it is not worse"

    @property
    def measure_text(self) -> str:
        """The measure as a user types it, by which readings have its number."""
        return self._options.measure.text

    @property
    def activity(self) -> str:
        """The pair of runs in progress."""
        return f"pair {self._number}" if self._number else ""

    def clone(self) -> MeasuringProbe:
        """Return another one with the same journal, for another thread."""
        return self._against(self.environment)

    def with_flag(self, flag: Flag) -> MeasuringProbe:
        """Return a probe like this one that sets a compiler flag on the asked build alone."""
        return self._against(self.environment, (flag,))

    def _against(self, environment: Environment, flags: tuple[Flag, ...] = ()) -> MeasuringProbe:
        """Return a probe like this one for another environment."""
        return MeasuringProbe(
            environment,
            self._reference_environment,
            self._journal,
            replace(self._options, flags=flags),
            on_pair=self._on_pair,
            reference_runs=self._shared,
        )

    def close(self) -> None:
        """End a run in progress, remove what the runs compiled, and end the agent of torch's own tools.

        From another thread that is while a pair runs: the pair is no evidence then, and the question has no answer.
        """
        self._stopped = self._runs
        self._asked.close()
        self._with_flags.close()
        if self._shared is None or self._stopped:
            self._reference.close()
        super().close()

    def measurement(self, repro: Repro, *, again: bool = False) -> BuildMeasurement:
        """Return the comparison; ``again`` measures anew, whatever the journal has."""
        return self._measured(_Request(repro, again))

    def _measured(self, request: _Request) -> BuildMeasurement:
        names = (self._reference_environment.build.name, self.environment.build.name)
        key = result_key(self._options, request.repro, *names, *request.tags)
        result = None if request.again else self._journal.get(key, partial(decode, BuildMeasurement))
        if result is None:
            result = self._refused(request) or self._compare(request, names)
            self._journal.put(key, asdict(result))
        self._last = result.detail
        return result

    def _refused(self, request: _Request) -> BuildMeasurement | None:
        """Measure the reference against itself; return the reason if that is no clear "not worse".

        With flags on the asked build that has been done before.
        """
        if self._same or self._options.measure.counted or request.limits is not None or self._options.flags:
            return None
        with self._against(self._reference_environment) as itself:
            noise = itself.measurement(request.repro)
        if noise.answer is MeasuredAnswer.NOT_WORSE:
            return None
        reason = noise.reason if noise.reason not in (None, "too-close") else TOO_NOISY
        return BuildMeasurement(MeasuredAnswer.UNTESTABLE, reason, noise.detail)

    def _compare(self, request: _Request, names: tuple[str, str]) -> BuildMeasurement:
        found = Comparison(
            self._options.measure,
            self._options.worse_by,
            lambda number: self._pair(request, number),
            candidate=request.limits is not None,
        ).decide(names)
        self._number = 0
        if self._same and found.answer is not MeasuredAnswer.NOT_WORSE:
            reason = TOO_NOISY if found.reason in (None, "too-close") else found.reason
            words = f"torch {names[0]} against itself: {found.detail}"
            return replace(found, answer=MeasuredAnswer.UNTESTABLE, reason=reason, detail=words)
        return found

    def _pair(self, request: _Request, number: int) -> Pair:
        """Return a pair of runs; it is run if the journal does not have it."""
        both = [
            (one.build.name, one.facts.torch, one.facts.git_version, one.facts.python, one.facts.triton)
            for one in (self._reference_environment, self.environment)
        ]
        key = fingerprint(self._options.key(request.repro), "pair", both, number, *request.tags)
        pair = None if request.again else self._journal.get(key, partial(decode, Pair))
        if pair is None:
            self._number = number
            self._on_pair(number)
            pair = self._uninterrupted(partial(self._run_pair, request, key, cold=number == 0))
            self._journal.put(key, asdict(pair))
        if number == 0:
            self._takes_turns = self._can_take_turns(pair)
        return pair

    def _uninterrupted(self, act: Callable[[], Pair]) -> Pair:
        """Return a pair of runs. Raises ``RuntimeError`` if the probe was closed meanwhile."""
        self._runs, self._stopped = True, False
        try:
            pair = act()
        except (OSError, ValueError):
            if not self._stopped:
                raise
        finally:
            self._runs = False
        if self._stopped:
            raise RuntimeError("the probe was closed while it measured")
        return pair

    def _can_take_turns(self, pair: Pair) -> bool:
        """Return True if the script times calls of its own, which both builds can make in turns."""
        timed = {pair.reference.timed, pair.asked.timed}
        local = self.environment.local and self._reference_environment.local
        return local and timed == {BENCHMARKED} and self._options.measure.name in ("time", "cpu-time")

    def _run_pair(self, request: _Request, key: str, *, cold: bool) -> Pair:
        """Run both builds, in an order drawn for this pair, so that being first favors neither."""
        timeout = request.limits.compiled_floor if request.limits is not None else None
        candidate = request.limits is not None
        reference = partial(self._reference.run, request.repro, cold, timeout=timeout, reuse_kernels=candidate)
        asked = partial(self._asked.run, *reference.args, **reference.keywords, flags=self._options.flags)
        reference_first = random.Random(key).random() >= 0.5
        runs = [reference, asked] if reference_first else [asked, reference]
        if self._takes_turns and not cold:
            readings = in_turns(runs[0], runs[1])
        else:
            first = runs[0]()
            # A candidate that fails on one build is no evidence, whatever the other one does.
            is_over = self._stopped or (candidate and first.failure)
            readings = (first, Reading(failure="not-run", detail=f"{first.detail} there") if is_over else runs[1]())
        return Pair(*(readings if reference_first else readings[::-1]))

    def generated_code(self, repro: Repro) -> Pair | None:
        """Return a run of each build with the code that inductor generated; ``None`` if one failed or generated none.

        A test of the user's own is not asked for it.
        """
        if self._options.command is not None:
            return None
        names = (self._reference_environment.build.name, self.environment.build.name)
        key = fingerprint("code", result_key(self._options, repro, *names))
        pair = self._journal.get(key, partial(decode, Pair))
        if pair is None:
            pair = self._uninterrupted(
                lambda: Pair(self._reference.generated_code(repro), self._asked.generated_code(repro))
            )
            self._journal.put(key, asdict(pair))
        return pair if pair.reference.code and pair.asked.code else None

    def tried_flag(self, repro: Repro, flag: Flag) -> Pair:
        """Return a run of the asked build without a compiler flag, as the reference, and one with it.

        They are one run if inductor generates the same code with it, unless it is the compiling that is measured.
        """
        key = fingerprint("flag", self._options.key(repro), self.environment.build.name, flag)
        pair = self._journal.get(key, partial(decode, Pair))
        if pair is None:
            pair = self._uninterrupted(lambda: self._flag_pair(repro, flag))
            self._journal.put(key, asdict(pair))
        return pair

    def _flag_pair(self, repro: Repro, flag: Flag) -> Pair:
        measure = self._options.measure
        run = partial(self._with_flags.run, repro, flags=(flag,))
        if measure.needs_cold_compile:
            return Pair(self._asked.run(repro, True), run(True))
        generated, with_flag = self.generated_code(repro), self._with_flags.generated_code(repro, (flag,))
        if with_flag.failure or generated is None or with_flag.code == generated.asked.code:
            return Pair(with_flag, with_flag)
        if measure.counted:
            return Pair(generated.asked, with_flag)
        # Without the flag, it may have been compiled by an earlier command, of which the journal has the code.
        self._asked.run(repro, False)
        return Pair(self._asked.run(repro, False), run(False))

    def observe(self, repro: Repro, settings: Settings | None = None) -> Observation:
        """Return an observation with the comparison's words; there is no eager run."""
        found = self.measurement(repro)
        errors = "" if found.answer is not MeasuredAnswer.UNTESTABLE else found.detail
        return Observation(Ending("not-run"), Ending("finished", errors=errors, seconds=found.seconds))

    def mismatch(self, repro: Repro, settings: Settings | None = None) -> Mismatch | None:
        """Return the mismatch if the build is worse, else ``None``."""
        return self._mismatch_of(self.measurement(repro))

    def _mismatch_of(self, found: BuildMeasurement) -> Mismatch | None:
        if found.answer is not MeasuredAnswer.WORSE or found.value is None or found.reference is None:
            return None
        name, unit = self._options.measure.text, self._options.measure.unit
        return Mismatch(
            MismatchKind.SLOW,
            found.detail,
            signature_of(self._options.measure, found),
            attribute=name,
            eager=f"{format_value(found.reference, unit)} with torch {self._reference_environment.build.name}",
            compiled=f"{format_value(found.value, unit)} with torch {self.environment.build.name}",
        )

    def untestable(self, repro: Repro, settings: Settings | None = None) -> Untestable | None:
        """Return the reason why the build can't be compared; ``None`` if it can."""
        found = self.measurement(repro)
        if found.answer is not MeasuredAnswer.UNTESTABLE:
            return None
        return Untestable(found.reason or "untestable", found.detail)

    def succeeds_in_eager(self, repro: Repro) -> bool:
        """Return ``False``: nothing is run without ``torch.compile``."""
        return False

    def ask(self, question: Question) -> Verdict:
        """Answer whether the build is worse than the reference, and a candidate for the reason of the original."""
        return self._verdict(question, again=False)

    def ask_in_fresh_process(self, question: Question) -> Verdict:
        """Answer a question by measuring anew."""
        return self._verdict(question, again=True)

    def ask_once(self, question: Question) -> Verdict:
        """Answer a question by measuring anew: one run alone says nothing."""
        return self._verdict(question, again=True)

    def _verdict(self, question: Question, *, again: bool) -> Verdict:
        began = time.monotonic()
        is_strict = question.strictness is Strictness.STRICT
        found = self._measured(_Request(question.repro, again, question.limits if is_strict else None))
        seconds = time.monotonic() - began
        if found.answer is MeasuredAnswer.UNTESTABLE:
            return Verdict(Answer.UNTESTABLE, found.reason, found.detail, seconds)
        if found.answer is MeasuredAnswer.NOT_WORSE:
            return Verdict(Answer.NONE, None, found.detail, seconds)
        measure = self._options.measure
        other = other_reason(measure, question.signature, signature_of(measure, found)) if is_strict else None
        if other is not None:
            return Verdict(Answer.OTHER, "another-reason", other, seconds)
        return Verdict(Answer.SAME, None, found.detail, seconds)

    def mismatch_in_fresh_process(self, repro: Repro, settings: Settings | None = None) -> Mismatch | None:
        """Return the mismatch that measuring anew shows."""
        return self._mismatch_of(self.measurement(repro, again=True))

    def ask_again(self, question: Question, number: int) -> Verdict:
        """Return the first answer: the test of its pairs has an error rate already."""
        return self.ask(question)


def _is_same(first: Environment, second: Environment) -> bool:
    return first.build.name == second.build.name and first.facts == second.facts
