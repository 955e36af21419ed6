"""Folders that strangers filled are removed, whatever lies in them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from nested import nest

from torchbisect.containers.store.removal import remove_tree
from torchbisect.core.folders import MOST_DEPTH, walk_folder


def locked(place: Path) -> None:
    (place / "a/b/c").mkdir(parents=True)
    (place / "a/b/c/file").write_text("x")
    for name in ("a/b/c", "a/b", "a"):
        (place / name).chmod(0)
    place.chmod(0)


def links(place: Path) -> None:
    (place / "loop").symlink_to("loop")
    (place / "up").symlink_to("..")
    (place / "outside").symlink_to(place.parent / "kept")
    os.mkfifo(place / "pipe")


FILLED: dict[str, Callable[[Path], None]] = {
    "deep": lambda place: nest(place, "d", 3000),
    "long": lambda place: nest(place, "d" * 250, 40),
    "locked": locked,
    "links": links,
}


@pytest.mark.parametrize("fill", FILLED.values(), ids=FILLED)
def test_a_folder_is_removed_and_nothing_beside_it(fill: Callable[[Path], None], tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/file").write_text("x")
    place = tmp_path / "filled"
    place.mkdir()
    fill(place)
    # As a user without rights where the tests are run by root, whom no mode stops.
    child = os.fork()
    if child == 0:
        try:
            if os.getuid() == 0:
                for folder, folders, files in walk_folder(tmp_path):
                    for name in (".", *folders, *files):
                        os.lchown(os.path.join(folder, name), 65534, 65534)
            os.chdir(tmp_path)
            if os.getuid() == 0:
                os.setuid(65534)
            remove_tree(Path("filled"))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    left = place.exists()
    remove_tree(place)
    assert not left or (fill is not links and fill is not locked and os.getuid() == 0)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert (tmp_path / "kept/file").exists()


@pytest.mark.long
def test_a_walk_ends_in_the_depth(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").write_text("x")
    nest(tmp_path, "d", 3000)
    found = list(walk_folder(tmp_path))
    assert (found[0][1], sorted(found[0][2])) == (["d"], ["file", "loop"])
    assert len(found) == MOST_DEPTH + 1
    remove_tree(tmp_path / "d")
