"""Files that torchbisect writes itself, in a folder that a stranger may have filled."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from torchbisect.containers.store.locks import FileLock
from torchbisect.core.errors import InputError
from torchbisect.core.regular_file import open_own_file
from torchbisect.probe.journal import Journal

KINDS = ("link", "link-to-nothing", "link-loop", "pipe")


def placed(path: Path, kind: str) -> Path:
    """Put something in the way of a file, and return a file of the user that must stay as it is."""
    users = path.parent / "of-the-user"
    users.write_text("precious\n")
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to({"link": users, "link-to-nothing": path.parent / "new", "link-loop": path}[kind])
    return users


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_written_through_a_link_or_a_pipe(tmp_path: Path, kind: str) -> None:
    users = placed(tmp_path / "file", kind)
    with pytest.raises(InputError, match="file is a link, a pipe or a device, which is never written to: remove it"):
        open_own_file(tmp_path / "file", os.O_RDWR)
    assert users.read_text() == "precious\n"
    assert not (tmp_path / "new").exists()


USES: dict[str, Callable[[Path], object]] = {
    "lock": lambda path: FileLock(path).try_acquire(),
    "journal": lambda path: Journal(path).put("key", 1),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_lock_and_a_journal_keep_to_their_folder(tmp_path: Path, kind: str, use: Callable[[Path], object]) -> None:
    users = placed(tmp_path / "file", kind)
    with pytest.raises(InputError, match=r"never written to|the journal can't be used"):
        use(tmp_path / "file")
    assert users.read_text() == "precious\n"


def test_a_new_file_is_made(tmp_path: Path) -> None:
    os.close(open_own_file(tmp_path / "file", os.O_RDWR))
    assert (tmp_path / "file").read_bytes() == b""
