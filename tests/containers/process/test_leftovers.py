"""Leftovers of a killed run: its processes end by themselves, and the next command removes its folders."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from waiting import eventually, processes_of

from torchbisect.containers.leftovers import sweep
from torchbisect.containers.process.processes import owner, owner_is_dead

#: A run that starts loops as an agent's child, a command's child and a worker's would be, then waits.
RUN = """
import sys, threading
from torchbisect.containers.process.run_command import run_command
from torchbisect.containers.process.processes import HostProcess
from torchbisect.containers.store.run_folder import unique_folder

folder = unique_folder("homes")
(folder / "file").write_text("x")
variables = {"PATH": "/usr/bin:/bin", "TMPDIR": str(folder)}
LOOP = "import os, time; os.setsid(); print(os.getpid(), flush=True); time.sleep(600)"
CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {LOOP!r}])"
kept = HostProcess([sys.executable, "-c", CHILD], environment=variables)
print(kept.pid, kept.read_line(60).decode().strip(), folder, flush=True)
threading.Thread(
    target=run_command, args=([sys.executable, "-c", CHILD + "  # a command"],), kwargs={"environment": variables}
).start()
while True:
    line = sys.stdin.readline().strip()
    if not line:
        break
    exec(line)
kept.kill()
"""


@contextmanager
def a_run(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], list[int], Path]]:
    """Start a run with a temporary folder of its own; yield it, the ids of its loops and the folder of its files."""
    (tmp_path / "tmp").mkdir(exist_ok=True)
    with subprocess.Popen(
        [sys.executable, "-c", RUN],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
        start_new_session=True,
    ) as run:
        assert run.stdout is not None
        child, loop, folder = run.stdout.readline().split()
        until = time.monotonic() + 30
        while not (command := [one.pid for one in processes_of(folder, "# a command")]) and time.monotonic() < until:
            time.sleep(0.05)
        yield run, [int(child), int(loop), *command], Path(folder)
        run.kill()


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.slow
@pytest.mark.parametrize("waited_for", [True, False], ids=["reaped", "zombie"])
def test_a_killed_run_leaves_no_process_and_no_folder(tmp_path: Path, waited_for: bool) -> None:
    with a_run(tmp_path) as (run, loops, _):
        assert len(loops) == 3
        os.killpg(run.pid, signal.SIGKILL)
        if waited_for:
            run.wait()
        assert eventually(lambda: not any(map(alive, loops))), "no other run was needed"
        assert eventually(lambda: not list((tmp_path / "tmp").iterdir()))


#: An agent, and a loop that it adopts: the loop has left the session, and its variables are overwritten or gone.
ADOPTS = """
import ctypes, os, sys, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
LOOP = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
if not os.fork():
    os.setsid()
    if os.fork():
        os._exit(0)
    if sys.argv[1] == "gone":
        os.execve(sys.executable, ["kworker/0:1", "-S", "-c", LOOP], {})
    fields = open("/proc/self/stat").read().rpartition(")")[2].split()
    ctypes.memset(int(fields[47]), ord("x"), int(fields[48]) - int(fields[47]))
    ctypes.CDLL(None).prctl(15, b"systemd", 0, 0, 0)
    if sys.argv[1] == "stopped":
        print(os.getpid(), flush=True)
        os.kill(os.getpid(), 19)
    exec(LOOP)
time.sleep(600)
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["gone", "overwritten", "stopped"])
def test_a_killed_run_leaves_no_process_that_hid_its_variables(tmp_path: Path, how: str) -> None:
    with a_run(tmp_path) as (run, loops, _):
        assert run.stdin is not None
        assert run.stdout is not None
        more = f"other = HostProcess([sys.executable, '-c', {ADOPTS!r}, {how!r}], environment=variables)"
        run.stdin.write(more + "; print(other.pid, other.read_line(60).decode().strip(), flush=True)\n")
        run.stdin.flush()
        agent, hidden = map(int, run.stdout.readline().split())
        assert psutil.Process(hidden).ppid() == agent
        assert "TORCHBISECT_PROCESS" not in psutil.Process(hidden).environ()
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        assert eventually(lambda: not any(map(alive, [*loops, agent, hidden])))


def test_a_living_run_keeps_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    with a_run(tmp_path) as (run, loops, folder):
        os.kill(run.pid, signal.SIGSTOP)
        os.utime(folder.parent, (0, 0))
        os.utime(folder, (0, 0))
        sweep()
        assert all(map(alive, loops))
        assert (folder / "file").exists()
        os.kill(run.pid, signal.SIGCONT)


def test_a_run_that_ends_by_itself_removes_its_folder(tmp_path: Path) -> None:
    with a_run(tmp_path) as (run, loops, _):
        os.kill(loops[2], signal.SIGKILL)
        run.communicate("", timeout=60)
        assert list((tmp_path / "tmp").iterdir()) == []
        assert not any(map(alive, loops))


@pytest.mark.slow
def test_the_next_command_removes_what_a_killed_guard_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    with a_run(tmp_path) as (run, loops, folder):
        (guard,) = [one.pid for one in processes_of(tmp_path / "tmp", "leftovers")]
        os.kill(guard, signal.SIGKILL)
        run.kill()
        run.wait()
        time.sleep(0.2)
        assert any(map(alive, loops))
        sweep()
        assert eventually(lambda: not any(map(alive, loops)))
        assert not folder.parent.exists()


def test_foreign_folders_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / ".alive").write_text("")
    (tmp_path / "torchbisect-run-link").symlink_to(tmp_path / "mine")
    (tmp_path / "torchbisect-notes").mkdir()
    (tmp_path / "torchbisect-notes" / ".alive").write_text("")
    (tmp_path / "torchbisect-run-users").mkdir()
    (tmp_path / "torchbisect-run-users" / "file").write_text("kept")
    (tmp_path / "torchbisect-run-empty").mkdir()
    (tmp_path / "torchbisect-homes-old").mkdir()
    (tmp_path / "torchbisect-homes-old" / ".alive").write_text("")
    sweep()
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["mine", "torchbisect-notes", "torchbisect-run-link", "torchbisect-run-users"]
    assert (tmp_path / "mine" / ".alive").exists()


def test_owners() -> None:
    boot, namespace, pid, start = owner().split(".")
    assert not owner_is_dead(owner())
    assert owner_is_dead(f"{boot}.{namespace}.{pid}.{int(start) + 1}")
    assert owner_is_dead(f"another-boot.{namespace}.{pid}.{start}")
    assert not owner_is_dead(f"{boot}.{int(namespace) + 1}.{pid}.{start}1"), "it can't be known from here"
    for text in ("", "x", "1.2.3", f"{boot}.{namespace}.x.1", f"{boot}.{namespace}.1.2.3"):
        assert not owner_is_dead(text)
