"""Patches are read as git reads them, apply only where every line fits, and touch nothing but torch's Python."""

from __future__ import annotations

import difflib
import subprocess
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


def test_a_commit_of_a_clone(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        return subprocess.run(
            ["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout

    git("init", "-q")
    for text in (OLD, NEW):
        (tmp_path / PATH).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / PATH).write_text(text)
        git("add", ".")
        git("commit", "-qm", "change")
    patch = read_patch(git("rev-parse", "HEAD").strip(), lambda: History.open(str(tmp_path), tmp_path / "cache"))
    assert apply_patch(patch, {PATH: OLD.encode()}) == {PATH: NEW.encode()}


@pytest.mark.parametrize("name", ["no-such.diff", "#", "161036x", "pytorch/vision#3"])
def test_a_name_that_is_nothing(name: str) -> None:
    with pytest.raises(InputError, match="--patch"):
        read_patch(name, no_history)
