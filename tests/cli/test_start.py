"""A start that takes long is spoken of, before anything is imported that a command needs."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

#: Takes the place of the commands: an import that lasts two seconds.
SLOW = """
import sys, time
from torchbisect.cli import main
main._PLAIN = 1.0

class Late:
    def find_spec(self, name, path=None, target=None):
        if name == "torchbisect.cli.commands":
            time.sleep(2)

sys.meta_path.insert(0, Late())
sys.argv[1:] = ["-V"]
main.main()
"""


def test_a_slow_start_is_one_line_in_a_pipe(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", SLOW], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stderr == "  … starting\n"
    assert "version" in done.stdout


def test_a_slow_start_is_removed_from_a_terminal(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", SLOW],
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm"},
        cwd=tmp_path,
    ) as process:
        process.wait()
    shown = os.read(ours, 1000)
    os.close(ours)
    os.close(theirs)
    assert shown == "\r  … starting\r\x1b[K".encode()


def test_a_quick_start_is_not_spoken_of(tmp_path: Path) -> None:
    words = SLOW.replace("sleep(2)", "sleep(0)").replace("_PLAIN = 1.0", "_PLAIN = 60.0")
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stderr == ""


def test_a_start_imports_no_library_that_few_commands_need(tmp_path: Path) -> None:
    ask = "import sys, torchbisect.cli.commands; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert {"docker", "git", "hypothesis", "mcp", "pypi_simple", "requests", "torch"}.isdisjoint(done.stdout.split())
