"""Processes that a killed torchbisect left running are ended by the next run."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import psutil

from torchbisect.containers.process.commands import clean_environment
from torchbisect.containers.process.processes import HostProcess, sweep_processes

OWNER = """
import sys
from torchbisect.containers.process.processes import HostProcess
process = HostProcess(["sleep", "600"], environment={"PATH": "/usr/bin:/bin"})
print(process.pid, flush=True)
sys.stdin.read()
"""


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_processes_of_a_dead_run_are_ended_and_of_a_living_run_stay(tmp_path: Path) -> None:
    living = HostProcess(["sleep", "600"], environment=clean_environment(tmp_path))
    with subprocess.Popen([sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        orphan = int(owner.stdout.readline())
        sweep_processes()
        assert alive(orphan)
        owner.kill()
        owner.wait()
    assert alive(orphan)
    assert sweep_processes() >= 1
    until = time.monotonic() + 5
    while alive(orphan) and time.monotonic() < until:
        time.sleep(0.01)
    assert not alive(orphan)
    assert alive(living.pid)
    living.kill()
