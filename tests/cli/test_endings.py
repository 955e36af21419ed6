"""The end of a command: whatever happens, one line, and never the exit code of an answer."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from torchbisect.core.errors import Exit

pytestmark = pytest.mark.slow

#: A program that ends as the command does, with a statement in place of the command.
_PROGRAM = """\
import sys, os, threading, atexit, click
from torchbisect.core.command_line import run_command
def command(*_, **__):
    {body}
class Command:
    main = staticmethod(command)
run_command(lambda: Command)
"""


def ended(
    body: str, folder: Path, shell: str = "", before: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    program = _PROGRAM.format(body=body.replace("\n", "\n    "))
    command = ["bash", "-c", f'{before} "$0" "$@" {shell}', sys.executable, "-c", program]
    environment = {**os.environ, "TORCHBISECT_CACHE_DIR": str(folder), **variables}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)


CRASHES = {
    "exception": "raise ValueError('wrong')",
    "recursion": "f = lambda: f()\nf()",
    "memory": "raise MemoryError",
    "import": "import torchbisect.core.no_such_module",
    "syntax": "compile('(', '', 'exec')",
    "exit-text": "sys.exit('text')",
    "exit-1": "sys.exit(1)",
    "exit-0": "sys.exit(0)",
    "generator": "raise GeneratorExit",
    "os-error": "open('/no/such/file')",
    "huge-message": "raise ValueError('x' * 10**8)",
    "no-message": "class E(Exception):\n    def __str__(self): raise KeyError\nraise E",
    "group": "raise ExceptionGroup('many', [ValueError()])",
    "unknown-status": "return 77",
    "newlines": "raise ValueError('one\\ntorchbisect: no mismatch\\x1b[2J')",
    "surrogate": "raise ValueError('\\udcff')",
}


@pytest.mark.parametrize("body", CRASHES.values(), ids=CRASHES)
def test_a_crash_is_one_line_and_no_answer(body: str, tmp_path: Path) -> None:
    if "ExceptionGroup" in body and sys.version_info < (3, 11):
        pytest.skip("there are no exception groups")
    done = ended(body, tmp_path)
    assert done.returncode == Exit.MACHINE
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr[:-1].isprintable()
    assert len(done.stderr) < 1000
    if "memory" not in done.stderr:
        place = re.search(r"report it with (\S+),", done.stderr)
        assert place is not None
        assert Path(place[1]).parent == tmp_path / "log"
        assert 0 < Path(place[1]).stat().st_size < 2_000_000


def test_the_log_of_a_crash_has_no_secret(tmp_path: Path) -> None:
    body = "raise ValueError('https://user:hunter2hunter2@host/simple')"
    done = ended(body, tmp_path)
    log = next((tmp_path / "log").glob("crash-*.txt")).read_text()
    assert "ValueError" in log
    assert "hunter2" not in log + done.stderr


def test_logs_of_crashes_do_not_fill_the_disk(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    for number in range(50):
        (tmp_path / "log" / f"crash-20200101-0000{number:02}-1.txt").write_text("old")
    assert ended("raise ValueError", tmp_path).returncode == Exit.MACHINE
    assert len(list((tmp_path / "log").iterdir())) == 20


def test_a_crash_where_no_log_can_be_written(tmp_path: Path) -> None:
    done = ended(
        "raise ValueError('wrong')", tmp_path / "no" / "\0", TORCHBISECT_CACHE_DIR="/proc/none", TMPDIR="/proc"
    )
    assert done.returncode == Exit.MACHINE
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("body", "status"),
    [("return 1", 1), ("return 0", 0), ("return None", 0), ("return 3", 3), ("raise KeyboardInterrupt", 130),
     ("raise click.Abort", 130), ("raise click.UsageError('no')", 2), ("raise EOFError", 5),
     ("raise BrokenPipeError", 5)],
)  # fmt: skip
def test_the_status_of_a_command(body: str, status: int, tmp_path: Path) -> None:
    done = ended(body, tmp_path)
    assert done.returncode == status
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "body",
    [
        "threading.Thread(target=lambda: 1 / 0).start()\nreturn 3",
        "atexit.register(lambda: 1 / 0)\nreturn 3",
        "class D:\n    def __del__(self): raise ValueError\nD()\nreturn 3",
    ],
    ids=["thread", "atexit", "destructor"],
)
def test_a_failure_beside_the_command_changes_no_status(body: str, tmp_path: Path) -> None:
    assert ended(body, tmp_path).returncode == 3


OPEN_FILES = "import resource\nprint(resource.getrlimit(resource.RLIMIT_NOFILE))\nreturn 1"


@pytest.mark.parametrize(("soft", "hard", "shown"), [(20, 4096, 1024), (20, 300, 300), (2048, 4096, 2048)])
def test_a_low_limit_on_open_files_is_raised(soft: int, hard: int, shown: int, tmp_path: Path) -> None:
    done = ended(OPEN_FILES, tmp_path, before=f"ulimit -Sn {soft}; ulimit -Hn {hard};")
    assert (done.returncode, done.stdout) == (1, f"({shown}, {hard})\n")


@pytest.mark.parametrize("most", [12, 20, 60, 200])
def test_too_few_open_files_are_no_answer(most: int, tmp_path: Path) -> None:
    done = ended(OPEN_FILES, tmp_path, before=f"ulimit -n {most};")
    assert done.returncode == Exit.MACHINE
    assert done.stderr.startswith(f"torchbisect: this process may have {most} files open")
    assert done.stderr.count("\n") == 1


def test_no_more_files_can_be_opened(tmp_path: Path) -> None:
    done = ended("kept = [open('/dev/null') for _ in range(5000)]", tmp_path, before="ulimit -n 1024;")
    assert done.returncode == Exit.MACHINE
    assert "raise the limit" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("text", ["'x'", "'x' * 10**6"])
@pytest.mark.parametrize("write", ["print({})", "click.echo({})", "sys.stdout.buffer.write(({}).encode())"])
def test_standard_output_is_full(text: str, write: str, tmp_path: Path) -> None:
    done = ended(f"{write.format(text)}\nreturn 1", tmp_path, ">/dev/full")
    assert done.returncode == Exit.MACHINE
    assert done.stderr.count("\n") == 1
    assert "standard output can't be written to (No space left on device)" in done.stderr


@pytest.mark.parametrize("shell", ["| head -c 1", "| true"])
def test_a_reader_that_leaves(shell: str, tmp_path: Path) -> None:
    done = ended("[print('x' * 1000) for _ in range(10**5)]\nreturn 1", tmp_path, f"{shell}; exit ${{PIPESTATUS[0]}}")
    assert done.returncode == Exit.MACHINE
    assert done.stderr == ""


@pytest.mark.parametrize("shell", [">&-", "2>&-", "<&-", ">&- 2>&- <&-", "2>/dev/full"])
def test_streams_that_are_closed(shell: str, tmp_path: Path) -> None:
    body = f"open({str(tmp_path / 'file')!r}, 'w').write('kept')\nprint('x')\nreturn 1"
    assert ended(body, tmp_path, shell).returncode == 1
    assert (tmp_path / "file").read_text() == "kept"
    assert ended("raise ValueError", tmp_path, shell).returncode == Exit.MACHINE


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_an_interrupt_and_a_request_to_end(number: signal.Signals) -> None:
    program = _PROGRAM.format(body="print('ready', flush=True)\n    import time; time.sleep(60)")
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # the tests may run after nohup
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(0.1)
    process.send_signal(number)
    errors = process.communicate(timeout=30)[1]
    assert (process.returncode, errors) == (Exit.INTERRUPTED, "torchbisect: interrupted\n")


def test_a_closed_terminal_is_ignored_after_nohup(tmp_path: Path) -> None:
    body = "import signal\nos.kill(os.getpid(), signal.SIGHUP)\nprint('on')"
    done = ended(body, tmp_path, before="trap '' HUP;")
    assert (done.returncode, done.stdout) == (Exit.FINISHED, "on\n"), done.stderr


@pytest.mark.parametrize("module", ["torchbisect", "torchbisect.cli.main"])
def test_the_module_is_the_command(module: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", module, "run", "no-such\x1b[31m\nfile.py"],
        capture_output=True, text=True, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert done.returncode == Exit.INPUT
    assert done.stderr.count("\n") == 1
    assert "\x1b" not in done.stderr


def test_a_part_that_cannot_be_imported(tmp_path: Path) -> None:
    """A broken installation is a fault, and no answer."""
    program = (
        "import sys; sys.modules['torchbisect.pipeline.run'] = None\nfrom torchbisect.cli.main import main; main()"
    )
    environment = {**os.environ, "TORCHBISECT_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == Exit.MACHINE
    assert done.stderr.startswith("torchbisect: a fault of torchbisect itself (ModuleNotFoundError")
