"""The folder that scripts run in: every run finds the same files, whatever the one before did to them."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from torchbisect.probe.agent.run.workplace import Workplaces

FILES = {"a.txt": "a", "data/b.txt": "b", "data/deep/c.txt": "c"}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return the copy of a user's files."""
    for name, text in FILES.items():
        path = tmp_path / "source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "source" / "link").symlink_to("data")
    return tmp_path / "source"


def listed(root: Path) -> dict[str, str]:
    """Return every file's text, every link's target and every folder below a folder."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        found[name] = os.readlink(path) if path.is_symlink() else "folder" if path.is_dir() else path.read_text()
    return found


def rewrite_quietly(root: Path) -> None:
    before = (root / "a.txt").stat()
    (root / "a.txt").write_text("z")
    os.utime(root / "a.txt", ns=(before.st_atime_ns, before.st_mtime_ns))


def replace_by_link(root: Path) -> None:
    (root / "data" / "deep" / "c.txt").unlink()
    (root / "data" / "deep").rmdir()
    (root / "data" / "deep").symlink_to(root.parent.parent / "outside")


def lock_up(root: Path) -> None:
    (root / "locked" / "in").mkdir(parents=True)
    (root / "locked" / "in" / "file").write_text("x")
    (root / "locked").chmod(0)
    (root / "data").chmod(0o500)


def replace_the_script(root: Path) -> None:
    (root / "repro.py").unlink()
    (root / "repro.py").symlink_to(root.parent.parent / "outside" / "kept.txt")


def replace_everything(root: Path) -> None:
    root.rename(root.with_name("gone"))
    root.symlink_to(root.parent.parent / "outside")


CHANGES: dict[str, Callable[[Path], object]] = {
    "nothing": lambda root: None,
    "appends": lambda root: (root / "a.txt").write_text("aa"),
    "rewrites with the old time": rewrite_quietly,
    "removes": lambda root: (root / "a.txt").unlink(),
    "adds": lambda root: (root / "new.txt").write_text("x"),
    "changes rights": lambda root: (root / "a.txt").chmod(0o400),
    "puts a link in place of a folder": replace_by_link,
    "locks folders": lock_up,
    "puts a link in place of the script": replace_the_script,
    "puts a link in place of everything": replace_everything,
    "puts a pipe in place of a file": lambda root: ((root / "a.txt").unlink(), os.mkfifo(root / "a.txt")),
    "changes a link": lambda root: ((root / "link").unlink(), (root / "link").symlink_to("/etc")),
}


@pytest.mark.parametrize("name", CHANGES)
def test_the_next_run_finds_the_files_as_they_were(name: str, source: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "kept.txt").write_text("kept")
    (tmp_path / "agent").mkdir()
    workplaces = Workplaces(str(tmp_path / "agent"))
    repro = {"source": "print(1)\n", "name": "repro.py", "files": {"key": "k", "folder": str(source)}}
    first = workplaces.prepare(repro)
    root = Path(first.cwd)
    before = listed(root)
    assert {**before, "repro.py": ""} == {**listed(source), "repro.py": ""}
    CHANGES[name](root)
    second = workplaces.prepare({**repro, "source": "print(2)\n"})
    assert second == first
    assert listed(root) == {**before, "repro.py": "print(2)\n"}
    assert listed(tmp_path / "outside") == {"kept.txt": "kept"}
    assert {name: (source / name).read_text() for name in FILES} == FILES
    assert stat.S_IMODE((root / "a.txt").stat().st_mode) == 0o644


def test_a_folder_lists_its_files_in_the_same_order(source: Path, tmp_path: Path) -> None:
    """The memory of a container lists them in the order in which they were made."""
    for number in range(20):
        (source / f"f{number}").write_text("x")
    workplaces = Workplaces(str(tmp_path / "agent"))
    repro = {"source": "", "name": "repro.py", "files": {"key": "k", "folder": str(source)}}
    (tmp_path / "agent").mkdir()
    root = Path(workplaces.prepare(repro).cwd)
    before = os.listdir(root)
    for change in ("rewrite", "remove", "add"):
        (root / "f3").write_text("y")
        if change == "remove":
            (root / "f4").unlink()
        (root / "new").write_text("z")
        workplaces.prepare(repro)
        assert os.listdir(root) == before


def test_unchanged_files_are_not_copied_again(source: Path, tmp_path: Path) -> None:
    workplaces = Workplaces(str(tmp_path))
    repro = {"source": "", "name": "repro.py", "files": {"key": "k", "folder": str(source)}}
    root = Path(workplaces.prepare(repro).cwd)
    before = (root / "data/b.txt").stat().st_ino
    (root / "a.txt").write_text("other")
    workplaces.prepare(repro)
    assert (root / "data/b.txt").stat().st_ino == before
    assert (root / "a.txt").read_text() == "a"


@pytest.mark.parametrize("name", ["appends", "rewrites with the old time", "changes a link", "replaces"])
def test_a_changed_original_ends_the_question(name: str, source: Path, tmp_path: Path) -> None:
    """What came over the protocol lies where scripts of the same user can write."""
    (tmp_path / "agent").mkdir()
    workplaces = Workplaces(str(tmp_path / "agent"))
    repro = {"source": "", "name": "repro.py", "files": {"key": "k", "folder": str(source)}}
    root = Path(workplaces.prepare(repro).cwd)
    replace: dict[str, Callable[[Path], object]] = {"replaces": lambda root: (
        (root / "new").write_text("z"), (root / "new").rename(root / "a.txt")
    )}  # fmt: skip
    for place in (root, source):
        {**CHANGES, **replace}[name](place)
    with pytest.raises(ValueError, match="a run has changed the original of"):
        workplaces.prepare(repro)
    for number in range(9):
        workplaces.prepare({"source": "", "name": "repro.py", "siblings": {"a/b.py": str(number)}})
    with pytest.raises(ValueError, match="a run has changed the original of"):
        workplaces.prepare(repro)


def test_few_working_copies_are_kept(tmp_path: Path) -> None:
    workplaces = Workplaces(str(tmp_path))
    for number in range(9):
        workplaces.prepare({"source": "", "name": "repro.py", "siblings": {"a/b.py": str(number)}})
    assert len(list(tmp_path.iterdir())) == 4
