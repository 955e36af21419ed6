"""The time limit of a run: what waits for a processor is not taken for idle."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from torchbisect.probe.agent.run.script_processes import RunClock, family_of

_BUSY = (
    "import os\nos.sched_setaffinity(0, {{{processor}}})\nos.sched_setscheduler(0, os.{policy}, os.sched_param(0))\n"
)
_BUSY += "while True: pass"


def _start(policy: str) -> subprocess.Popen[bytes]:
    processor = min(os.sched_getaffinity(0))
    return subprocess.Popen([sys.executable, "-c", _BUSY.format(processor=processor, policy=policy)])


@pytest.mark.slow
def test_a_run_that_gets_no_processor_is_not_idle() -> None:
    others = [_start("SCHED_OTHER") for _ in range(2)]
    run = _start("SCHED_IDLE")
    try:
        time.sleep(1)
        clock = RunClock(3.0)
        said = []
        for _ in range(25):
            said.append(clock.is_expired([run.pid]))  # the others are children of this process too
            time.sleep(0.2)
        assert not any(said)
    finally:
        for process in (run, *others):
            process.kill()
            process.wait()


@pytest.mark.slow
def test_a_run_that_sleeps_ends_at_its_limit() -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as run:
        time.sleep(1)
        clock = RunClock(1.0)
        said = []
        for _ in range(12):
            said.append(clock.is_expired(family_of(run.pid)))
            time.sleep(0.2)
        run.kill()
    assert said[-1]
    assert not said[0]
