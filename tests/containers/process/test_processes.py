"""Processes on this machine: their streams, and that none of them is left."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchbisect.containers.environment import Process
from torchbisect.containers.process.processes import MARK, HostProcess, StreamTail
from torchbisect.containers.process.run_command import Cancelled, CappedText, Completed, clean_environment, run_command
from torchbisect.core.errors import MachineError

Start = Callable[[str], HostProcess]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[HostProcess] = []

    def begin(code: str) -> HostProcess:
        command = [sys.executable, "-S", "-c", code]
        started.append(HostProcess(command, environment=clean_environment(tmp_path), directory=tmp_path))
        return started[-1]

    yield begin
    for process in started:
        process.kill()


def run(code: str, home: Path, **options: object) -> Completed:
    return run_command([sys.executable, "-S", "-c", code], environment=clean_environment(home), **options)  # type: ignore[arg-type]


def has_ended(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_lines_pass_unchanged_in_both_directions(start: Start) -> None:
    echo = "for line in sys.stdin.buffer: sys.stdout.buffer.write(line); sys.stdout.flush()"
    process: Process = start(f"import sys\n{echo}")
    for line in (b"plain\n", b"\x00\xff\xfe \r \x1b[0m\n", b"x" * 300_000 + b"\n", b"\n"):
        process.send(line)
        assert process.read_line(10) == line
    assert process.read_line(0) is None
    assert process.read_line(0.01) is None


def test_the_end_of_output_is_returned_every_time(start: Start) -> None:
    process = start("import sys; sys.stdout.write('a\\nb'); sys.stderr.write('why')")
    assert [process.read_line(10) for _ in range(4)] == [b"a\n", b"b", b"", b""]
    assert process.kill() == 0
    assert process.errors() == "why"
    assert process.read_line(1) == b""


def test_a_process_that_ended_takes_no_input(start: Start) -> None:
    process = start("")
    assert process.read_line(10) == b""
    with pytest.raises(BrokenPipeError):
        process.send(b"x" * 10_000_000)
    process.kill()
    with pytest.raises(BrokenPipeError):
        process.send(b"x")


def test_the_end_of_standard_error_is_kept_and_never_blocks(start: Start) -> None:
    process = start("import sys; sys.stderr.write('y' * 3_000_000 + 'last'); sys.stderr.flush(); print('done')")
    assert process.read_line(20) == b"done\n"
    process.kill()
    assert process.errors().endswith("ylast")
    assert len(process.errors()) <= 64 * 1024


def test_the_status_names_the_signal(start: Start) -> None:
    process = start("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert process.read_line(10) == b""
    assert process.kill() == -signal.SIGSEGV
    assert process.kill() == -signal.SIGSEGV


DEAF = "import signal; [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]; "
GRANDCHILDREN = """
import os, subprocess, sys, time
held = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
left = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"], start_new_session=True)
print(held.pid, left.pid, flush=True)
"""


@pytest.mark.parametrize("ending", ["", "time.sleep(600)", "import signal; signal.signal(15, 1); time.sleep(600)"])
def test_no_process_that_it_started_is_left(start: Start, ending: str) -> None:
    """One child is in its group, and one in a session of its own, which no signal to the group reaches."""
    process = start(DEAF + GRANDCHILDREN + ending)
    line = process.read_line(10)
    assert line
    begun = time.monotonic()
    process.kill()
    assert time.monotonic() - begun < 5
    assert all(has_ended(int(pid)) for pid in line.split())
    assert has_ended(process.pid)


def test_a_chain_of_orphans_is_found_by_its_mark(start: Start) -> None:
    """Each child starts the next in a new session and ends, so no parent leads to the last one."""
    code = (
        "import os, sys, time\n"
        "for _ in range(4):\n"
        "    if os.fork(): os._exit(0)\n"
        "    os.setsid()\n"
        "print(os.getpid(), flush=True)\n"
        "time.sleep(600)"
    )
    process = start(code)
    line = process.read_line(10)
    assert line
    assert not has_ended(int(line))
    process.kill()
    assert has_ended(int(line))


def test_a_process_that_is_asked_to_end_cleans_up(tmp_path: Path, start: Start) -> None:
    """It gets time after the end of its input; one that ignores that is killed."""
    code = f"import sys, time; sys.stdin.read(); time.sleep(0.3); open({str(tmp_path / 'cleaned')!r}, 'w'); sys.exit(7)"
    assert start(code).stop(60) == 7
    assert (tmp_path / "cleaned").exists()
    deaf = start("import time; print('begun', flush=True); time.sleep(600)")
    assert deaf.read_line(60) == b"begun\n"
    assert deaf.stop(0.2) == -9


def test_a_program_that_cannot_be_started(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="can't be started"):
        HostProcess([str(tmp_path / "none")], environment={})
    with pytest.raises(MachineError, match="can't be started"):
        run_command([str(tmp_path / "none")], environment={})


def test_a_command_that_ends(tmp_path: Path) -> None:
    done = run("import sys; print(sys.stdin.read() == ''); sys.stderr.write('e'); sys.exit(7)", tmp_path)
    assert (done.status, done.output, done.errors, done.timed_out) == (7, "True\n", "e", False)


def test_a_command_that_never_ends(tmp_path: Path) -> None:
    done = run(DEAF + "print('here', flush=True)\nwhile True: pass", tmp_path, timeout=0.2)
    assert done.timed_out
    assert done.output == "here\n"
    assert done.seconds < 10


def test_a_command_whose_child_holds_its_output_open(tmp_path: Path) -> None:
    begun = time.monotonic()
    done = run(GRANDCHILDREN, tmp_path, timeout=60)
    assert done.status == 0
    assert all(has_ended(int(pid)) for pid in done.output.split())
    assert time.monotonic() - begun < 10


def test_a_command_that_is_cancelled(tmp_path: Path) -> None:
    cancel = threading.Event()
    timer = threading.Timer(0.2, cancel.set)
    timer.start()
    with pytest.raises(Cancelled):
        run("import time; time.sleep(600)", tmp_path, cancel=cancel)


def test_long_output_is_cut_in_the_middle(tmp_path: Path) -> None:
    done = run("import sys; sys.stdout.write('begin' + 'x' * 5_000_000 + 'end')", tmp_path, cap=1000)
    assert done.output.startswith("begin")
    assert done.output.endswith("end")
    assert "bytes left out" in done.output
    assert len(done.output) < 2000


@given(st.lists(st.binary(max_size=40)), st.integers(2, 30))
def test_the_beginning_and_the_end_are_kept(pieces: list[bytes], size: int) -> None:
    capped, tail, whole = CappedText(size), StreamTail(size), b"".join(pieces)
    for piece in pieces:
        capped.add(piece)
        tail.add(piece)
    half = max(size // 2, 1)
    if len(whole) <= 2 * half:
        assert capped.text() == whole.decode("utf-8", "replace")
    else:
        gap = f"\n[... {len(whole) - 2 * half} bytes left out ...]\n"
        ends = whole[:half].decode("utf-8", "replace"), whole[-half:].decode("utf-8", "replace")
        assert capped.text() == ends[0] + gap + ends[1]
    assert tail.text() == whole[-size:].decode("utf-8", "replace")


def test_the_environment_has_none_of_the_users_secrets(tmp_path: Path) -> None:
    base = {
        "PATH": "/p",
        "API_TOKEN": "s3cret",
        "PYTHONPATH": "/x",
        "TORCH_LOGS": "all",
        "CXX": "g++-12",
        "HOME": "/me",
    }
    found = clean_environment(tmp_path, {"TORCH_LOGS": "inductor"}, base=base)
    assert found["TORCH_LOGS"] == "inductor"
    assert found["CXX"] == "g++-12"
    assert found["HOME"] == found["TMPDIR"] == str(tmp_path)
    assert "s3cret" not in found.values()
    assert "PYTHONPATH" not in found


def test_each_start_has_its_own_mark(start: Start) -> None:
    marks = set()
    for _ in range(2):
        line = start(f"import os; print(os.environ[{MARK!r}])").read_line(10)
        marks.add(line)
    assert len(marks) == 2
    assert os.environ.get(MARK, "").encode() + b"\n" not in marks
