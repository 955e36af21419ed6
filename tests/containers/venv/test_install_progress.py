"""Progress of an install, as the bytes that the installer has written."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from torchbisect.containers.process.run_command import run_command
from torchbisect.containers.venv.install_progress import InstallProgress, written_bytes
from torchbisect.containers.venv.install_size import InstallSize


def test_the_share_of_the_bytes_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    now, said = [100.0], []
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    size = InstallSize(4 * 10**9, 8 * 10**9)
    shown = InstallProgress("installing torch 2.8.0", size, said.append, lambda process: process, 100.0)
    shown.show(10**9)
    assert said == [], "the first line is that of the caller"
    for done in (2 * 10**9, 4 * 10**9, 9 * 10**9):
        now[0] += 1.5
        shown.show(done)
        shown.show(done)
    assert said == [f"installing torch 2.8.0, 4.0 GB to download: about {percent} % done" for percent in (25, 50, 99)]


def test_nothing_is_told_where_the_system_does_not_tell() -> None:
    said: list[str] = []
    shown = InstallProgress("installing", InstallSize(4, 8), said.append, lambda process: None, -10.0)
    shown.show(1)
    assert said == []
    assert written_bytes(2**30) is None


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="this system does not tell what a process has written")
def test_the_bytes_that_a_command_has_written_are_seen_while_it_runs(tmp_path: Path) -> None:
    seen: list[int | None] = []
    code = "import time; open('file', 'wb').write(b'x' * 3_000_000); time.sleep(0.5)"
    run_command(
        [sys.executable, "-c", code],
        environment=dict(os.environ),
        directory=tmp_path,
        on_wait=lambda process: seen.append(written_bytes(process)),
    )
    assert max(one or 0 for one in seen) >= 3_000_000
