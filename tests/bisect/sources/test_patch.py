"""Patches are read as git reads them, apply only where every line fits, and touch nothing but torch's Python."""

from __future__ import annotations

import difflib
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchbisect.bisect.sources.history import History
from torchbisect.bisect.sources.patch import Patch, apply_patch, read_patch
from torchbisect.core.errors import InputError, InstallFailed

PATH = "torch/_dynamo/guards.py"
OLD, NEW = "a = 1\nb = 2\nc = 3\n", "a = 1\nb = 20\nc = 3\n"


def diff(old: str, new: str, path: str = PATH) -> str:
    lines = difflib.unified_diff(old.splitlines(keepends=True), new.splitlines(keepends=True), f"a/{path}", f"b/{path}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def no_history() -> NoReturn:
    raise AssertionError("no commit was named")


def read(tmp_path: Path, text: str) -> Patch:
    place = tmp_path / "fix.diff"
    place.write_bytes(text.encode())
    return read_patch(str(place), no_history)


def test_a_patch_and_its_reverse(tmp_path: Path) -> None:
    patch = read(tmp_path, diff(OLD, NEW))
    assert patch.files == patch.python == (PATH,)
    assert apply_patch(patch, {PATH: OLD.encode()}) == {PATH: NEW.encode()}
    assert apply_patch(patch, {PATH: NEW.encode()}, reverse=True) == {PATH: OLD.encode()}


lines = st.lists(st.sampled_from(["x = 1", "y = 2", "", "    return x", "é = '\u2028'", "\tz"]), max_size=12)


@given(lines, lines, st.booleans())
def test_any_two_texts(tmp_path_factory: pytest.TempPathFactory, old: list[str], new: list[str], ends: bool) -> None:
    before, after = ("\n".join([*part, "end"]) + "\n" * ends for part in (old, new))
    if before == after or "\u2028" in before + after:
        return
    patch = read(tmp_path_factory.mktemp("patch"), diff(before, after))
    assert apply_patch(patch, {PATH: before.encode()}) == {PATH: after.encode()}
    assert apply_patch(patch, {PATH: after.encode()}, reverse=True) == {PATH: before.encode()}


@pytest.mark.parametrize(
    "there", [{PATH: b"a = 1\nb = 3\nc = 3\n"}, {PATH: NEW.encode()}, {}], ids=["other", "has it", "none"]
)
def test_a_patch_that_does_not_fit(tmp_path: Path, there: dict[str, bytes]) -> None:
    with pytest.raises(InstallFailed) as refused:
        apply_patch(read(tmp_path, diff(OLD, NEW)), there)
    assert refused.value.reason == "patch-does-not-apply"


def test_tests_and_documents_are_left_out_and_native_files_are_told(tmp_path: Path) -> None:
    others = diff("old\n", "new\n", "test/test_x.py") + diff("old\n", "new\n", "aten/src/ATen/native/Copy.cpp")
    patch = read(tmp_path, diff(OLD, NEW) + others)
    assert patch.python == (PATH,)
    assert patch.native == ("aten/src/ATen/native/Copy.cpp",)
    assert apply_patch(patch, {PATH: OLD.encode()}) == {PATH: NEW.encode()}


def test_a_new_a_removed_and_a_renamed_file(tmp_path: Path) -> None:
    made = "diff --git a/torch/new.py b/torch/new.py\nnew file mode 100644\n" + diff(
        "", "n = 1\n", "torch/new.py"
    ).replace("--- a/torch/new.py", "--- /dev/null")
    gone = "diff --git a/torch/old.py b/torch/old.py\ndeleted file mode 100644\n" + diff(
        "o = 1\n", "", "torch/old.py"
    ).replace("+++ b/torch/old.py", "+++ /dev/null")
    moved = (
        "diff --git a/torch/x.py b/torch/y.py\nsimilarity index 100%\nrename from torch/x.py\nrename to torch/y.py\n"
    )
    patch = read(tmp_path, made + gone + moved)
    there = {"torch/old.py": b"o = 1\n", "torch/x.py": b"x = 1\n"}
    done = {"torch/new.py": b"n = 1\n", "torch/old.py": None, "torch/x.py": None, "torch/y.py": b"x = 1\n"}
    assert apply_patch(patch, there) == done


LINK = (
    "diff --git a/torch/l.py b/torch/l.py\nnew file mode 120000\n"
    "--- /dev/null\n+++ b/torch/l.py\n@@ -0,0 +1 @@\n+/etc/passwd\n"
)


@pytest.mark.parametrize("text", ["", "no diff at all\n", LINK, "\0" * 100, diff("a\n", "b\n", "../../outside.py")])
def test_what_is_no_patch_of_torch(tmp_path: Path, text: str) -> None:
    try:
        patch = read(tmp_path, text)
    except InputError:
        return
    assert patch.python == ()


@dataclass(frozen=True)
class Repository:
    """A repository in a folder."""

    folder: Path

    def git(self, *words: str) -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        done = subprocess.run(["git", *identity, *words], cwd=self.folder, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, text: str) -> str:
        (self.folder / PATH).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / PATH).write_text(text)
        self.git("add", ".")
        self.git("commit", "-qm", "change")
        return self.git("rev-parse", "HEAD")

    def patch(self, sha: str) -> Patch:
        return read_patch(sha, lambda: History.open(str(self.folder), self.folder / "cache"))


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path)
    made.git("init", "-q")
    return made


def test_a_commit_of_a_clone(repository: Repository) -> None:
    repository.commit(OLD)
    patch = repository.patch(repository.commit(NEW))
    assert apply_patch(patch, {PATH: OLD.encode()}) == {PATH: NEW.encode()}
    assert apply_patch(patch, {PATH: NEW.encode()}, reverse=True) == {PATH: OLD.encode()}


def test_a_commit_is_merged_where_the_lines_around_it_differ(repository: Repository, tmp_path: Path) -> None:
    """A diff in a file names no clone, so every line around its change must be there."""
    base = "".join(f"line {number}\n" for number in range(12))
    repository.commit(base)
    patch = repository.patch(repository.commit(base.replace("line 5\n", "line five\n")))
    there = base.replace("line 3\n", "").replace("line 8\n", "line eight\n")
    merged = there.replace("line 5\n", "line five\n")
    assert apply_patch(patch, {PATH: there.encode()}) == {PATH: merged.encode()}
    assert apply_patch(patch, {PATH: merged.encode()}, reverse=True) == {PATH: there.encode()}
    with pytest.raises(InstallFailed, match="does not apply"):
        apply_patch(replace(patch, objects=None), {PATH: there.encode()})
    for conflict in (base.replace("line 5\n", "line V\n"), base.replace("line 4\nline 5\nline 6\n", "")):
        with pytest.raises(InstallFailed, match="does not apply"):
            apply_patch(patch, {PATH: conflict.encode()})


def test_a_build_that_has_the_change_already(repository: Repository) -> None:
    repository.commit(OLD)
    patch = repository.patch(repository.commit(NEW))
    with pytest.raises(InstallFailed, match="changes nothing"):
        apply_patch(patch, {PATH: NEW.encode()})
    with pytest.raises(InstallFailed, match="changes nothing"):
        apply_patch(patch, {PATH: OLD.encode()}, reverse=True)


@pytest.mark.parametrize("name", ["no-such.diff", "#", "161036x", "pytorch/vision#3"])
def test_a_name_that_is_nothing(name: str) -> None:
    with pytest.raises(InputError, match="--patch"):
        read_patch(name, no_history)
