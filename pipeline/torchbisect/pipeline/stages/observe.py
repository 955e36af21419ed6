"""The observe stage: find out if the script shows a mismatch, and later if it shows it in every run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.core.build import Build
from torchbisect.core.repro import Repro, Settings
from torchbisect.core.verdict import MismatchKind
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.script_packages import advice, missing_modules
from torchbisect.pipeline.session import Session
from torchbisect.pipeline.stages.confirm import CONFIRMING
from torchbisect.probe.judge.classify import Mismatch, agreement
from torchbisect.probe.judge.environment_faults import (
    OF_THE_SCRIPT,
    Untestable,
    ended_badly,
    environment_fault,
    missing_module,
)
from torchbisect.probe.judge.observation import Observation
from torchbisect.probe.oracle import Oracle, Question, times_shown
from torchbisect.probe.standalone_run import last_words
from torchbisect.reports.model.report import ReportVerdict
from torchbisect.reports.render.error_logs import cut_log

#: The runs that must show a mismatch before a day is spent on it; one run is a fork and costs little.
RUNS = 3

# Notes that begin like this name a feature that this torch lacks; every older torch lacks some.
_MISSING_FEATURE = "this torch has no "

# The next step for a script that is no evidence, where its reason does not say so itself.
_ADVICE = {
    "timed-out": "allow it more with --timeout SECONDS, or let it do less",
    "not-compiled": "name a script that calls it in its own process, and not in one that it starts",
    "crashes-in-eager": "the script must run without torch.compile",
    "reads-input": "give it the data that it reads (torchbisect check SCRIPT < data), or remove what reads it",
    "random-numbers": "draw them before the compiled function is called",
    "out-of-memory": "let it use less",
    "test-broken": "try it by hand in the folder where torchbisect was started",
    "skipped": "name a torch with --torch where it can",
}


@dataclass(frozen=True)
class Observed:
    """The verdict on the script, on the build where it is said to fail.

    Attributes:
        verdict: ``mismatch``, ``none``, ``flaky`` or ``untestable``.
        eager_log: the last part of the eager run's standard error; empty for a test, which has one run.
        compiled_log: the last part of the compiled run's standard error, or of the test's.
        mismatch: the mismatch, or ``None``.
        reason: one line that gives the reason of the verdict; ``None`` for ``mismatch``.
        machine_at_fault: an ``untestable`` is the fault of this machine or this torch, not of the script.
        runs: the number of runs that looked for the mismatch.
        shown: the number of those runs that showed it.
        fails_by_itself: the script ends well without compiling and badly with it.
    """

    verdict: ReportVerdict
    eager_log: str = ""
    compiled_log: str = ""
    mismatch: Mismatch | None = None
    reason: str | None = None
    machine_at_fault: bool = False
    runs: int = 0
    shown: int = 0
    fails_by_itself: bool = False

    @property
    def certain_mismatch(self) -> Mismatch | None:
        """The mismatch if every run shows it, else ``None``."""
        return self.mismatch if self.verdict == "mismatch" else None


def unrunnable(options: Options, interpreter: Interpreter, failing: Build, repro: Repro) -> Observed | None:
    """Return the verdict on a script that imports a module which its run will not find; ``None`` for any other."""
    missing = missing_modules(options, interpreter, failing, repro)
    if not missing:
        return None
    names = " and ".join(missing) if len(missing) < 3 else f"{', '.join(missing[:-1])} and {missing[-1]}"
    verb = "is" if len(missing) == 1 else "are"
    reason = f"the script imports {names}, which {verb} not installed: {advice(options, failing, missing)}"
    return Observed("untestable", reason=reason)


def observe(session: Session, oracle: Oracle, repro: Repro) -> Observed:
    """Run the script both ways, or the user's test, and name the mismatch. Raises ``DiskFull``."""
    display = session.display
    display.status(lambda: ": ".join(filter(None, (f"running {oracle.subject}", oracle.activity))))
    observed = _first_look(session, oracle, repro)
    if observed.verdict == "none" and oracle.runs_are_cheap:
        observed = _under_plain_python(session, oracle, repro, observed)
    if observed.verdict == "none" and oracle.runs_are_cheap:
        return _look_again(session, oracle, repro, observed)
    if observed.mismatch is not None:
        display.result(observed.mismatch.summary)
        display.detail(observed.mismatch.signature.text)
    return observed


def count_runs(
    session: Session,
    oracle: Oracle,
    repro: Repro,
    observed: Observed,
    settings: Settings,
    *,
    agrees: Callable[[Question], bool] | None = None,
    counted: Callable[[Question, int], int] | None = None,
) -> Observed:
    """Check that every run shows a mismatch, and a fresh process as well as a warm one.

    Return the observation with its runs counted, or with the verdict ``flaky``; unchanged if it is no certain mismatch.

    Args:
        settings: those on which runs cost least.
        agrees: returns True if a fresh process agrees with an answer; by default one is asked.
        counted: returns how many of so many further runs show it; by default they are made one after the other.
    """
    mismatch = observed.certain_mismatch
    if mismatch is None:
        return observed
    # A run of a script is a fork and costs little; a test may take half an hour, and a hang takes minutes.
    is_cheap = oracle.runs_are_cheap and mismatch.kind is not MismatchKind.HANG
    runs = max(RUNS, oracle.repeat) if is_cheap else oracle.repeat
    question = Question(repro, mismatch.signature, settings)
    if runs == 1 and mismatch.kind is MismatchKind.HANG:
        # The fresh process is the second run that waits for the whole time limit; a third would tell nothing new.
        session.display.status("running it in a fresh process, to see if every run shows it")
        shown = 1
    else:
        session.display.status(f"running it {runs} times more, to see if every run shows it")
        shown = (counted or partial(times_shown, oracle))(question, runs)
    if shown < runs:
        reason = f"flaky: {shown} of {runs} more runs showed it ({mismatch.summary})"
        return replace(observed, verdict="flaky", reason=reason, runs=runs, shown=shown)
    if not (agrees or oracle.fresh_process_agrees)(question):
        reason = f"flaky: a fresh process does not show it ({mismatch.summary})"
        return replace(observed, verdict="flaky", reason=reason, runs=runs + 1, shown=shown)
    return replace(observed, runs=runs, shown=shown)


def _first_look(session: Session, oracle: Oracle, repro: Repro) -> Observed:
    observation = oracle.observe(repro)
    oracle.use_prepared_process()
    untestable = oracle.untestable(repro)
    for note in observation.notes:
        if not note.startswith(_MISSING_FEATURE):
            session.notify(note)
    logs = (observation.eager.errors, observation.compiled.errors)
    if untestable is not None:
        agreed = agreement(observation, untestable, repro.source)
        if agreed is not None:
            return Observed("none", *logs, reason=f"compiled {agreed}, as eager does", runs=oracle.repeat)
        fault = environment_fault(observation)
        at_fault = untestable.reason == "broken-environment"
        at_fault |= fault is not None and fault.reason not in OF_THE_SCRIPT
        reason = _with_advice(session, oracle, observation, untestable)
        return Observed("untestable", *logs, reason=reason, machine_at_fault=at_fault)
    mismatch = oracle.mismatch(repro)
    if mismatch is None:
        runs = oracle.repeat if oracle.runs_are_cheap else 1
        return Observed("none", *logs, reason=oracle.pass_summary, runs=runs)
    ended = observation.compiled.how in ("raised", "exited") and not ended_badly(observation.eager)
    return Observed("mismatch", *logs, mismatch, fails_by_itself=ended and ended_badly(observation.compiled))


def last_lines(observed: Observed, most: int = 8) -> list[str]:
    """Return the last lines that a script which fails without ``torch.compile`` wrote to standard error.

    Frames and folders of torchbisect are left out.
    """
    if observed.verdict != "untestable":
        return []
    return [line.rstrip() for line in cut_log(observed.eager_log).splitlines() if line.strip()][-most:]


def _with_advice(session: Session, oracle: Oracle, observation: Observation, untestable: Untestable) -> str:
    """Return the reason in words, and what to do."""
    module = missing_module(observation) if untestable.reason == "missing-module" else None
    if module is not None:
        said, _, _ = untestable.detail.partition(": add --with ")
        return f"{said}: {advice(session.options, oracle.environment.build, [module])}"
    if untestable.reason == "fails-in-eager":
        return f"the script must run without torch.compile; {_eager_error(observation, untestable.detail)}"
    text = _ADVICE.get(untestable.reason)
    return f"{untestable.detail}; {text}" if text else untestable.detail


def _eager_error(observation: Observation, detail: str) -> str:
    """Return how the eager run ended, with its last words where it exited."""
    eager, ending = observation.eager, detail.removeprefix("without torch.compile the script ")
    if ending.startswith("raises "):
        return f"its error was: {ending.removeprefix('raises ')}"
    said = last_words(eager.errors) or last_words(eager.output)
    return f"it {ending}" + (f" and says: {said[:300]}" if said and eager.how == "exited" else "")


def _under_plain_python(session: Session, oracle: Oracle, repro: Repro, observed: Observed) -> Observed:
    """Confirm by one plain process that compiled code agrees; what a forked process hides is the verdict."""
    if ended_badly(oracle.observe(repro).compiled):
        return observed
    session.display.status(f"{CONFIRMING} that compiled code agrees")
    mismatch = oracle.mismatch_in_plain_process(repro)
    if mismatch is None:
        return observed
    seen = oracle.observe(repro)
    logs = (seen.eager.errors, seen.compiled.errors)
    return Observed("mismatch", *logs, mismatch, fails_by_itself=seen.compiled.how in ("raised", "exited"))


def _look_again(session: Session, oracle: Oracle, repro: Repro, observed: Observed) -> Observed:
    """Look for a mismatch in further runs, where ``--repeat`` asks for them."""
    for number in range(1, oracle.repeat):
        session.display.status(f"looking for a mismatch, run {number + 1} of {oracle.repeat}", number, oracle.repeat)
        found = oracle.mismatch_in_fresh_process(repro)
        if found is not None:
            reason = f"flaky: run {number + 1} showed a mismatch and {number} before it did not ({found.summary})"
            return replace(observed, verdict="flaky", mismatch=found, reason=reason, runs=number + 1, shown=1)
    return observed
