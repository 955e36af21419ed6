"""The observe stage: is there a mismatch, which one, and is it there each time?"""

from __future__ import annotations

from dataclasses import dataclass

from torchbisect.cli.display import Display
from torchbisect.probe.faults import environment_fault
from torchbisect.probe.journal import Journal
from torchbisect.probe.judging import Mismatch
from torchbisect.probe.observation import Observation
from torchbisect.probe.probe import Probe
from torchbisect.probe.repro import Repro
from torchbisect.reports import report as shapes
from torchbisect.reports.paths import without_machine

# A mismatch is looked for so often before a day is spent on it; a run is a fork and costs little.
RUNS = 3

# What to do about a script that is no evidence, where its reason doesn't say so itself.
_ADVICE = {
    "timed-out": "allow it more with --timeout SECONDS, or let it do less",
    "not-compiled": "name a script that calls torch.compile",
    "fails-in-eager": "name a script that works without torch.compile",
    "crashes-in-eager": "name a script that works without torch.compile",
    "reads-input": "let it do without",
    "out-of-memory": "let it use less",
}


@dataclass(frozen=True)
class Observed:
    """What the script showed where it is said to fail.

    Attributes:
        verdict: ``mismatch``, ``none``, ``flaky`` or ``untestable``.
        observation: the two runs.
        mismatch: the mismatch, where there is one.
        reason: for all but ``mismatch`` one line that says why.
        machine_at_fault: for ``untestable``: it is this machine's or this torch's fault, not the script's.
        runs: how often it was looked for.
        shown: how many of those runs showed it.
    """

    verdict: shapes.Outcome
    observation: Observation
    mismatch: Mismatch | None = None
    reason: str | None = None
    machine_at_fault: bool = False
    runs: int = 0
    shown: int = 0

    def for_report(self) -> shapes.Mismatch | None:
        """The mismatch as a report holds it."""
        if self.mismatch is None:
            return None
        found, signature = self.mismatch, self.mismatch.signature
        return shapes.Mismatch(
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
        return shapes.Logs(
            without_machine(self.observation.eager.errors), without_machine(self.observation.compiled.errors)
        )


def observe(probe: Probe, repro: Repro, display: Display) -> Observed:
    """Run the script both ways, name what differs, and see whether it does so each time.

    Raises:
        DiskFull: there is no room to run it.
    """
    display.status("running the script with and without torch.compile")
    observation, trouble = probe.observe(repro), probe.trouble(repro)
    if trouble is not None:
        at_fault = environment_fault(observation) is not None
        advice = _ADVICE.get(trouble.reason)
        reason = f"{trouble.detail}; {advice}" if advice else trouble.detail
        return Observed("untestable", observation, reason=reason, machine_at_fault=at_fault)
    mismatch = probe.mismatch(repro)
    if mismatch is None:
        return _agreeing(probe, repro, observation, display)
    display.result(mismatch.summary)
    display.detail(mismatch.signature.text)
    runs = max(RUNS, probe.repeat)
    display.status(f"running it {runs} times more")
    shown = round(runs * probe.flakiness(repro, mismatch.signature, runs))
    if shown < runs:
        why = f"flaky: {shown} of {runs} runs showed it ({mismatch.summary})"
        return Observed("flaky", observation, mismatch, why, runs=runs, shown=shown)
    return Observed("mismatch", observation, mismatch, runs=runs, shown=shown)


def _agreeing(probe: Probe, repro: Repro, observation: Observation, display: Display) -> Observed:
    """No mismatch in the first run; with ``--repeat`` it is looked for in more of them."""
    for number in range(1, probe.repeat):
        display.status(f"looking for a mismatch, run {number + 1} of {probe.repeat}")
        with Probe(probe.environment, Journal(), probe.limits) as fresh:
            found = fresh.mismatch(repro)
        if found is not None:
            why = f"flaky: run {number + 1} showed a mismatch and {number} before it did not ({found.summary})"
            return Observed("flaky", observation, found, why, runs=number + 1, shown=1)
    return Observed("none", observation, reason="compiled agrees with eager", runs=probe.repeat)
