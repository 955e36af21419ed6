"""Observe a script under plain ``python``: how it ends in a process that is neither forked nor recorded.

Compiled code that writes beyond its buffers may corrupt memory that a forked process never frees. Such a process ends
well where plain Python aborts.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass

from torchbisect.containers.environment import Environment
from torchbisect.core.repro import Repro, Settings, fingerprint
from torchbisect.probe.judge.classify import find_mismatch
from torchbisect.probe.judge.environment_faults import ended_badly
from torchbisect.probe.judge.observation import Ending, Observation
from torchbisect.probe.limits import LOAD_FACTOR, Limits
from torchbisect.probe.module_sources import repro_identity
from torchbisect.probe.standalone_run import PlainRun, run_plain

#: The further runs of which one has to fail too before a failure is believed. A process that aborts once in hundreds
#: of runs while it ends (a race of torch's own threads) says nothing about compiled code.
MORE_RUNS = 2

_SHELL_SIGNAL = 128  # a shell or a container engine adds it to the number of the signal


@dataclass
class ProcessTrust:
    """Trust in the answers of warm processes, and of fresh ones that fork; shared by the clones of a probe."""

    fresh_only: bool = False
    plain_only: bool = False


class PlainProcesses:
    """Runs scripts under the plain Python of an environment. The eager run of each script is made once."""

    def __init__(self, environment: Environment, limits: Limits) -> None:
        self._environment = environment
        self._seconds = LOAD_FACTOR * limits.compiled_floor
        self._eager: dict[str, Ending] = {}

    def failure(self, repro: Repro, notify: Callable[[str], None]) -> Observation | None:
        """Return the two runs of a script that fails with ``torch.compile`` only; ``None`` for any other.

        A failure that no further run repeats is none; ``notify`` receives a line about it.
        """
        failure = self._failure(repro)
        if failure is None or any(self._failure(repro) for _ in range(MORE_RUNS)):
            return failure
        mismatch = find_mismatch(failure, repro.source)
        said = f": {mismatch.summary}" if mismatch is not None else ""
        notify(f"one of {1 + MORE_RUNS} runs under plain python failed, by chance{said}")
        return None

    def _failure(self, repro: Repro) -> Observation | None:
        compiled = self._run(repro, Settings())
        if compiled.how == "timed-out" or not ended_badly(compiled):
            return None
        eager = self._eager_run(repro)
        return None if ended_badly(eager) else Observation(eager, compiled)

    def observe(self, repro: Repro, settings: Settings, *, eager_must_succeed: bool = False) -> Observation:
        """Return the two runs of a script; see ``Agent.observe``."""
        eager = self._eager_run(repro)
        if eager.how == "timed-out" or (eager_must_succeed and ended_badly(eager)):
            return Observation(eager, Ending("not-run"))
        return Observation(eager, self._run(repro, settings))

    def _eager_run(self, repro: Repro) -> Ending:
        key = fingerprint(repro_identity(repro))
        if key not in self._eager:
            self._eager[key] = self._run(repro, None)
        return self._eager[key]

    def _run(self, repro: Repro, settings: Settings | None) -> Ending:
        run = run_plain(
            self._environment,
            repro.source,
            repro.arguments,
            timeout=self._seconds,
            name=repro.name,
            settings=settings,
            files=repro.files,
        )
        return _ending(run)


def _ending(run: PlainRun) -> Ending:
    """Return the ending of a plain run. It tells nothing about what was compiled, which is taken to be something."""
    if run.status is None:
        return Ending("timed-out", seconds=run.seconds, errors=run.output, compiled=1)
    number = -run.status if run.status < 0 else run.status - _SHELL_SIGNAL
    if number > 0:
        known = {item.value: item.name for item in signal.Signals}
        return Ending("signalled", signal=known.get(number, str(number)), errors=run.output, compiled=1)
    if run.status:
        return Ending("exited", status=run.status, output=run.output, seconds=run.seconds, compiled=1)
    return Ending("finished", output=run.output, seconds=run.seconds, compiled=1)
