"""The private copy of a script's files: what is in it, what never gets in, and what a changed file changes."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from nested import nest

from torchbisect.containers.store.removal import remove_tree
from torchbisect.core.errors import InputError
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.script import opened_repro
from torchbisect.probe import script_files
from torchbisect.probe.module_sources import module_source, siblings
from torchbisect.probe.private_copy import packed
from torchbisect.probe.script_files import FileSnapshot, ScriptPlace, take_snapshot
from torchbisect.probe.test_command import copy_folder
from torchbisect.triage.jobs import IssueJob, IssueTask

LOOKS = "open('data.csv')\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of a user."""
    made = Path(os.path.realpath(tmp_path)) / "project"
    made.mkdir()
    (made / "data.csv").write_text("1,2\n")
    return made


def taken(
    folder: Path, source: str = LOOKS, *, added: tuple[Path, ...] = (), results: Path | None = None
) -> FileSnapshot:
    target = folder.parent / f"copy{time.monotonic_ns()}"
    target.mkdir()
    place = ScriptPlace(folder, folder, folder, "train.py")
    return take_snapshot(place, source, (), target, added=added, results=results)


def names(snapshot: FileSnapshot) -> set[str]:
    root = Path(snapshot.files.folder)
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_symlink() or not path.is_dir()}


def test_a_script_that_looks_at_no_file_gets_only_its_modules(folder: Path) -> None:
    (folder / "helper.py").write_text("x = 1\n")
    snapshot = taken(folder, "import helper\nimport torch\nprint(torch.ones(1))\n")
    assert names(snapshot) == {"helper.py"}
    assert names(taken(folder, "print(1)\n")) == set()


def test_a_script_that_only_names_files_gets_these(folder: Path) -> None:
    (folder / "other.csv").write_text("3\n")
    (folder / "parts").mkdir()
    (folder / "parts" / "first.csv").write_text("4\n")
    assert names(taken(folder, "import numpy\nprint(numpy.genfromtxt('data.csv'))\n")) == {"data.csv"}
    assert names(taken(folder, "import acme\nprint(acme.all_of('parts'))\n")) == {"parts/first.csv"}


def test_links_that_lead_outside_are_left_out_and_named(folder: Path) -> None:
    secret = folder.parent / "secret.txt"
    secret.write_text("key")
    (folder / "key.txt").symlink_to(secret)
    (folder / "above").symlink_to("..")
    (folder / "helper.py").symlink_to(secret)
    (folder / "inner.csv").symlink_to("data.csv")
    (folder / "whole").symlink_to(folder / "data.csv")
    (folder / "devices").symlink_to("/dev")
    (folder / "zero.py").symlink_to("/dev/zero")
    snapshot = taken(folder, LOOKS + "import helper, zero\n")
    assert names(snapshot) == {"data.csv", "inner.csv", "whole"}
    assert os.readlink(Path(snapshot.files.folder, "whole")) == "data.csv"
    assert "key.txt" in snapshot.left_out or "above" in snapshot.left_out
    assert "--files" in snapshot.left_out


def test_a_link_that_the_user_names_is_not_said_to_be_left_out(folder: Path) -> None:
    (folder.parent / "store").mkdir()
    (folder.parent / "store" / "a.txt").write_text("1")
    (folder / "sets").symlink_to("../store")
    assert "sets" in taken(folder, LOOKS).left_out
    snapshot = taken(folder, LOOKS, added=[folder / "sets"])
    assert "sets/a.txt" in names(snapshot)
    assert snapshot.left_out == ""


def test_a_module_that_is_a_link_to_the_outside_or_no_file_is_not_read(folder: Path) -> None:
    (folder.parent / "secret.py").write_text("key = 1\n")
    (folder / "helper.py").symlink_to("../secret.py")
    (folder / "zero.py").symlink_to("/dev/zero")
    os.mkfifo(folder / "pipe.py")
    (folder / "package").symlink_to("..")
    source = "import helper, zero, pipe, package.secret\n"
    assert siblings(source, str(folder)) == {}
    assert not [name for name in ("helper", "zero", "pipe", "package.secret") if module_source(str(folder), name)]


def test_pipes_and_hidden_files_are_left_out(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / ".env").write_text("KEY=1")
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("x")
    assert names(taken(folder)) == {"data.csv"}
    assert names(taken(folder, LOOKS + "load('.env')\n")) == {"data.csv", ".env"}


def test_paths_longer_than_the_system_takes_are_left_out(folder: Path) -> None:
    (folder / "to-a-long-name").symlink_to("n" * 300)
    place = os.open(folder, os.O_RDONLY)
    for _ in range(25):
        os.mkdir("d" * 200, dir_fd=place)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = below
    os.close(os.open("file", os.O_CREAT, dir_fd=place))
    os.close(place)
    assert names(taken(folder)) == {"data.csv"}


def test_folders_in_folders_without_end_are_left_out_and_named(folder: Path) -> None:
    nest(folder, "d", 1500)
    found = taken(folder)
    assert names(found) == {"data.csv"}
    assert "too deep" in found.left_out
    copy_folder(folder, folder.parent / "copy-of-a-test")
    remove_tree(folder / "d")


def test_results_environments_and_caches_are_left_out(folder: Path) -> None:
    marks = {"torchbisect-out": "report.json", "old-out": "journal.jsonl", "env": "pyvenv.cfg", "any": "CACHEDIR.TAG"}
    for name, mark in marks.items():
        (folder / name).mkdir()
        (folder / name / mark).write_text("x")
    assert names(taken(folder, results=folder / "torchbisect-out")) == {"data.csv"}


def test_what_the_script_names_comes_first_when_there_is_too_much(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        (folder / f"a{number}.bin").write_bytes(b"x" * 1000)
    monkeypatch.setattr(script_files, "MOST_BYTES", 3000)
    snapshot = taken(folder)
    assert "data.csv" in names(snapshot)
    assert len(names(snapshot)) == 3
    assert "18 files (18 kB, a" in snapshot.left_out
    assert len(snapshot.left_out.splitlines()) == 1


def test_a_changed_file_is_another_question(folder: Path) -> None:
    first = taken(folder).files
    assert taken(folder).files.identity == first.identity
    (folder / "data.csv").write_text("1,3\n")
    assert taken(folder).files.identity != first.identity


def test_of_the_home_folder_only_what_the_script_names(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder))
    (folder / "letters.txt").write_text("x")
    assert names(taken(folder)) == {"data.csv"}


def test_added_files_keep_their_place(folder: Path) -> None:
    other = folder.parent / "shared"
    (other / "deep").mkdir(parents=True)
    (other / "deep" / "x.bin").write_text("x")
    (folder / "link.bin").symlink_to(other / "deep" / "x.bin")
    snapshot = taken(folder, "print('nothing')\n", added=(Path("../shared"), Path("link.bin")))
    assert names(snapshot) == {"shared/deep/x.bin", "project/link.bin"}
    assert not Path(snapshot.files.folder, "project/link.bin").is_symlink()
    with pytest.raises(InputError, match="nosuch"):
        taken(folder, added=(Path("nosuch"),))


def test_a_copy_is_packed_whole(folder: Path) -> None:
    (folder / "large.bin").write_bytes(os.urandom(9 << 20))
    (folder / "empty").mkdir()
    items = [item for part in packed(Path(taken(folder).files.folder)) for item in part]
    assert [item["path"] for item in items if item["kind"] == "folder"] == ["empty"]
    assert [item["path"] for item in items if item["kind"] == "file"].count("large.bin") == 3


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "link to a device"])
def test_a_script_that_is_no_file_is_one_line(kind: str, folder: Path) -> None:
    script = folder / "repro.py"
    if kind == "pipe":
        os.mkfifo(script)
    elif kind == "folder":
        script.mkdir()
    elif kind == "device":
        script = Path("/dev/zero")
    else:
        script.symlink_to("/dev/tty")
    with pytest.raises(InputError) as told:
        opened_repro(Options(script), folder)
    assert len(str(told.value).splitlines()) == 1


def test_the_script_of_an_issue_gets_no_file_of_this_machine(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not of the folder where triage was started, and not of the folder where its results lie."""
    monkeypatch.chdir(folder)
    (folder / "helper.py").write_text("x = 1")
    out = tmp_path / "out"
    out.mkdir()
    (out / "helper.py").write_text("x = 1")
    task = IssueTask.of(IssueJob("a#1", source=LOOKS), Options(Path()), out, stated=False)
    assert task.options.script is not None
    task.options.script.write_text("import helper\n" + LOOKS)
    repro = opened_repro(task.options, tmp_path).repro
    assert (repro.files, repro.directory) == (None, None)


def test_a_hidden_file_that_a_library_reads_without_its_name(folder: Path) -> None:
    (folder / ".env").write_text("MODE=a\n")
    assert ".env" in names(taken(folder, "from dotenv import load_dotenv\nload_dotenv()\n"))
    assert ".env" not in names(taken(folder))


def test_of_the_home_only_what_is_named(folder: Path, tmp_path: Path) -> None:
    home = Path(os.path.realpath(tmp_path)) / "home"
    for name in (".cache/acme/a", ".cache/big/b", "sets/one/c", "sets/two/d", "notes.txt", "other.txt"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("x")
    source = "import os\nopen(os.path.expanduser('~/.cache/acme/a'))\nopen(os.path.expanduser('~/notes.txt'))\n"
    source += "os.listdir(os.path.expanduser('~/sets'))\n"
    place = ScriptPlace(folder, folder, folder, "train.py", home=home)

    def found(text: str) -> FileSnapshot:
        target = folder.parent / f"copy{time.monotonic_ns()}"
        target.mkdir()
        return take_snapshot(place, text, (), target)

    snapshot = found(source)
    inside = {"home/.cache/acme/a", "home/notes.txt", "home/sets/one/c", "home/sets/two/d"}
    assert {name for name in names(snapshot) if name.startswith("home/")} == inside
    assert snapshot.files.home == "home"
    assert found("open('.cache')\n").files.home is None
