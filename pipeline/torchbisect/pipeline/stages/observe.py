"""The observe stage: is there a mismatch and which one; then, where runs are cheapest: is it there each time?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from torchbisect.core.repro import Repro, Settings
from torchbisect.pipeline.progress import Display
from torchbisect.probe.judge.classify import Mismatch
from torchbisect.probe.judge.environment_faults import Untestable, ended_badly, environment_fault
from torchbisect.probe.oracle import Oracle
from torchbisect.probe.question import Question
from torchbisect.reports.model import report as shapes
from torchbisect.reports.scrub import without_machine_paths

# A mismatch is looked for so often before a day is spent on it; a run is a fork and costs little.
RUNS = 3

# Such a note says what a torch lacks, which every older one does.
_OF_THE_BUILD = "this torch has no "

# What to do about a script that is no evidence, where its reason doesn't say so itself.
_ADVICE = {
    "timed-out": "allow it more with --timeout SECONDS, or let it do less",
    "not-compiled": "name a script that calls torch.compile",
    "fails-in-eager": "name a script that works without torch.compile",
    "crashes-in-eager": "name a script that works without torch.compile",
    "reads-input": "let it do without",
    "random-numbers": "draw them before what is compiled is called",
    "out-of-memory": "let it use less",
    "test-broken": "try it by hand in the folder where torchbisect was started",
    "skipped": "name a torch with --torch where it can",
}


@dataclass(frozen=True)
class Observed:
    """What the script showed where it is said to fail.

    Attributes:
        verdict: ``mismatch``, ``none``, ``flaky`` or ``untestable``.
        eager_log, compiled_log: the last part of what the two runs wrote to standard error; a test has but one run.
        mismatch: the mismatch, where there is one.
        reason: for all but ``mismatch`` one line that says why.
        machine_at_fault: for ``untestable``: it is this machine's or this torch's fault, not the script's.
        runs: how often it was looked for.
        shown: how many of those runs showed it.
        fails_by_itself: the script ends well without compiling and badly with it.
    """

    verdict: shapes.ReportVerdict
    eager_log: str = ""
    compiled_log: str = ""
    mismatch: Mismatch | None = None
    reason: str | None = None
    machine_at_fault: bool = False
    runs: int = 0
    shown: int = 0
    fails_by_itself: bool = False

    def for_report(self) -> shapes.MismatchReport | None:
        """The mismatch as a report holds it."""
        if self.mismatch is None:
            return None
        found, signature = self.mismatch, self.mismatch.signature
        return shapes.MismatchReport(
            kind=str(found.kind),
            summary=found.summary,
            signature=signature.to_json(),
            fingerprint=signature.fingerprint,
            place=found.place or None,
            attribute=found.attribute or None,
            eager=found.eager or None,
            compiled=found.compiled or None,
            details=dict(found.detail),
            runs=self.runs,
            shown=self.shown,
        )

    def logs(self) -> shapes.Logs:
        """The last part of what the two runs wrote to standard error, without this machine's paths."""
        return shapes.Logs(without_machine_paths(self.eager_log), without_machine_paths(self.compiled_log))


def observe(probe: Oracle, repro: Repro, display: Display, notice: Callable[[str], None]) -> Observed:
    """Run the script both ways, or the user's test, and name what is wrong.

    Args:
        probe: answers.
        repro: the script.
        display: shows what goes on.
        notice: hears what a reader of the result should know.

    Raises:
        DiskFull: there is no room to run it.
    """
    display.status(f"running {probe.subject}")
    observed = _first_look(probe, repro, notice)
    if observed.verdict == "none" and probe.runs_are_cheap:
        return _looked_for_again(probe, repro, observed, display)
    if observed.mismatch is not None:
        display.result(observed.mismatch.summary)
        display.detail(observed.mismatch.signature.text)
    return observed


def each_time(probe: Oracle, repro: Repro, observed: Observed, settings: Settings, display: Display) -> Observed:
    """See whether a mismatch is there in every run, and in a fresh process as in a warm one.

    Args:
        probe: answers.
        repro: the script.
        observed: what it showed at first; as it is, if that is no mismatch.
        settings: those on which runs cost least.
        display: shows what goes on.

    Returns:
        The same with the runs counted, or with the verdict ``flaky``.
    """
    mismatch = observed.mismatch
    if mismatch is None or observed.verdict != "mismatch":
        return observed
    # A run of a script is a fork and costs little; a test may take half an hour.
    runs = max(RUNS, probe.repeat) if probe.runs_are_cheap else probe.repeat
    display.status(f"running it {runs} times more")
    shown = round(runs * probe.reproduction_rate(Question(repro, mismatch.signature, settings), runs))
    if shown < runs:
        why = f"flaky: {shown} of {runs} runs showed it ({mismatch.summary})"
        return replace(observed, verdict="flaky", reason=why, runs=runs, shown=shown)
    if not probe.fresh_process_agrees(Question(repro, mismatch.signature, settings)):
        why = f"flaky: a fresh process does not show it ({mismatch.summary})"
        return replace(observed, verdict="flaky", reason=why, runs=runs + 1, shown=shown)
    return replace(observed, runs=runs, shown=shown)


def _first_look(probe: Oracle, repro: Repro, notice: Callable[[str], None]) -> Observed:
    observation, trouble = probe.observe(repro), probe.untestable(repro)
    for note in observation.notes:
        if not note.startswith(_OF_THE_BUILD):
            notice(note)
    logs = (observation.eager.errors, observation.compiled.errors)
    if trouble is not None:
        at_fault = environment_fault(observation) is not None or trouble.reason == "broken-environment"
        return Observed("untestable", *logs, reason=_advised(trouble), machine_at_fault=at_fault)
    mismatch = probe.mismatch(repro)
    if mismatch is None:
        return Observed("none", *logs, reason=probe.pass_summary, runs=probe.repeat if probe.runs_are_cheap else 1)
    fails = observation.compiled.how in ("raised", "exited") and not ended_badly(observation.eager)
    return Observed("mismatch", *logs, mismatch, fails_by_itself=fails and ended_badly(observation.compiled))


def _advised(trouble: Untestable) -> str:
    advice = _ADVICE.get(trouble.reason)
    return f"{trouble.detail}; {advice}" if advice else trouble.detail


def _looked_for_again(probe: Oracle, repro: Repro, observed: Observed, display: Display) -> Observed:
    """No mismatch in the first run; with ``--repeat`` it is looked for in more of them."""
    for number in range(1, probe.repeat):
        display.status(f"looking for a mismatch, run {number + 1} of {probe.repeat}")
        found = probe.mismatch_in_fresh_process(repro)
        if found is not None:
            why = f"flaky: run {number + 1} showed a mismatch and {number} before it did not ({found.summary})"
            return replace(observed, verdict="flaky", mismatch=found, reason=why, runs=number + 1, shown=1)
    return observed
