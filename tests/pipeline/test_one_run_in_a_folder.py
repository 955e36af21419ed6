"""One folder of results, one run at a time: the second is told, and a dead run never blocks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from answer_table import Asked, Table
from table_run import Run, run_in

from torchbisect.containers.store.locks import lock_results
from torchbisect.core.errors import Exit, InputError

RELEASES = {"2.7.0": [], "2.8.0": ["one"]}

HOLDER = """
import sys
from pathlib import Path
from torchbisect.containers.store.locks import lock_results
folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
lock = lock_results(folder)
print("held", flush=True)
sys.stdin.read()
"""


def test_the_second_run_is_told_who_works_there_and_asks_nothing(run: Run, tmp_path: Path) -> None:
    second = Table(RELEASES)
    errors: list[BaseException | None] = []

    def begin_another(asked: Asked) -> None:
        if not errors:
            errors.append(None)
            errors[0] = run_in(tmp_path, second).error

    first = run(Table(RELEASES, on_question=begin_another))
    assert first.code == Exit.FINISHED
    (error,) = errors
    assert isinstance(error, InputError)
    assert f"process {os.getpid()} " in str(error)
    assert "since" in str(error)
    assert "--out" in str(error)
    assert second.asked == []
    assert run(second).code == Exit.FINISHED, "the lock is released at the end"


def test_a_killed_run_blocks_nobody(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(InputError, match=f"process {holder.pid} "):
            lock_results(tmp_path)
        holder.kill()
        holder.wait()
    lock_results(tmp_path).release()


def test_a_lock_file_with_anything_in_it(tmp_path: Path) -> None:
    (tmp_path / ".lock").write_bytes(b"\x1b[31m\xff\n" * 1000)
    lock = lock_results(tmp_path)
    (tmp_path / ".lock").write_bytes(b"\x1b[31m\xff\n" * 1000)
    with pytest.raises(InputError) as caught:
        lock_results(tmp_path)
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 1000
    lock.release()


def test_half_written_files_of_a_killed_run_are_removed_and_others_stay(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    for name in (".report.json.abcd_123.tmp", ".minimal.py.0123abcd.tmp", ".theirs.tmp", ".report.json.backup.old.tmp"):
        (out / name).write_text("x")
    run(Table(RELEASES))
    assert {path.name for path in out.glob(".*.tmp")} == {".theirs.tmp", ".report.json.backup.old.tmp"}
