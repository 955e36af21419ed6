"""File locks between threads and processes; a dead holder releases its lock."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from torchbisect.containers.store.locks import FileLock
from torchbisect.core.errors import MachineError

HOLD = """
import sys
from pathlib import Path
from torchbisect.containers.store.locks import FileLock
assert FileLock(Path(sys.argv[1])).try_acquire()
print("held", flush=True)
sys.stdin.read()
"""


def test_an_exclusive_lock_has_one_holder(tmp_path: Path) -> None:
    first, second = FileLock(tmp_path / "l"), FileLock(tmp_path / "l")
    assert first.try_acquire()
    assert not second.try_acquire()
    first.release()
    first.release()
    assert second.try_acquire()
    second.release()


def test_shared_locks_exclude_an_exclusive_one(tmp_path: Path) -> None:
    sharers = [FileLock(tmp_path / "l", shared=True) for _ in range(3)]
    assert all(lock.try_acquire() for lock in sharers)
    alone = FileLock(tmp_path / "l")
    for lock in sharers:
        assert not alone.try_acquire()
        lock.release()
    with alone.held():
        assert not sharers[0].try_acquire()


def test_a_killed_process_releases_its_lock(tmp_path: Path) -> None:
    path = tmp_path / "l"
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        said: list[str] = []
        lock = FileLock(path)
        assert not lock.try_acquire()
        holder.kill()
        assert lock.acquire(waiting="waiting", notify=said.append)
        assert path.exists()
        lock.release()


def test_a_wait_can_be_cancelled(tmp_path: Path) -> None:
    cancel = threading.Event()
    cancel.set()
    with FileLock(tmp_path / "l").held():
        assert not FileLock(tmp_path / "l").acquire(cancel=cancel)


def test_a_lock_file_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(MachineError, match="can't be written to"):
        FileLock(tmp_path / "file" / "l").try_acquire()


def test_a_folder_that_is_removed_meanwhile_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep removes empty folders of runs, also one whose run is about to lock it."""
    make, calls = os.mkdir, list[str]()

    def mkdir_beside_a_sweep(path: str, mode: int = 0o777) -> None:
        calls.append(str(path))
        if len(calls) == 1:  # it is there, and removed before anyone can look at it
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
        make(path, mode)
        if len(calls) == 2:
            os.rmdir(path)

    monkeypatch.setattr(os, "mkdir", mkdir_beside_a_sweep)
    lock = FileLock(tmp_path / "run" / ".alive")
    assert lock.try_acquire()
    assert lock.is_in_place()
    assert len(calls) == 3
    lock.release()


def test_a_folder_that_can_not_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(MachineError, match="can't be written to"):
        FileLock(tmp_path / "link" / "l").try_acquire()
