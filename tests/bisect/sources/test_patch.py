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


def test_a_file_saved_with_crlf_and_a_file_that_has_it(tmp_path: Path) -> None:
    """A mail program turns every line of the diff; git leaves its own headers as they are."""
    saved = read(tmp_path, diff(OLD, NEW).replace("\n", "\r\n"))
    assert apply_patch(saved, {PATH: OLD.encode()}) == {PATH: NEW.encode()}
    old, new = OLD.replace("\n", "\r\n"), NEW.replace("\n", "\r\n")
    changed = "".join(
        f"{line[0]}{line[1:-1]}\r\n" if line[0] in "+- " and line[:3] not in ("+++", "---") else line
        for line in diff(OLD, NEW).splitlines(keepends=True)
    )
    assert apply_patch(read(tmp_path, changed), {PATH: old.encode()}) == {PATH: new.encode()}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("pytorch-old/", "pytorch-new/"),
        ("/old/lib/python3.11/site-packages/", "/new/lib/python3.11/site-packages/"),
        ("/home/me/pytorch/", "/home/me/pytorch/"),
    ],
    ids=["no prefix", "two folders", "two installations", "a clone"],
)
def test_paths_of_a_diff_are_taken_from_the_root_of_the_repository(tmp_path: Path, old: str, new: str) -> None:
    text = diff(OLD, NEW).replace("--- a/", f"--- {old}").replace("+++ b/", f"+++ {new}")
    patch = read(tmp_path, text)
    assert patch.files == (PATH,)
    assert apply_patch(patch, {PATH: OLD.encode()}) == {PATH: NEW.encode()}


def test_a_test_with_torch_in_its_path_is_none_of_torch(tmp_path: Path) -> None:
    patch = read(tmp_path, diff(OLD, NEW, "test/torch/_dynamo/guards.py"))
    assert (patch.python, patch.left_out) == ((), ("test/torch/_dynamo/guards.py",))


def test_a_renamed_file_that_changes_and_has_no_prefix(tmp_path: Path) -> None:
    text = (
        "diff --git torch/x.py torch/y.py\nsimilarity index 60%\nrename from torch/x.py\nrename to torch/y.py\n"
        "--- torch/x.py\n+++ torch/y.py\n@@ -1,3 +1,3 @@\n a = 1\n-b = 2\n+b = 20\n c = 3\n"
    )
    patch = read(tmp_path, text)
    assert patch.python == ("torch/x.py", "torch/y.py")
    assert apply_patch(patch, {"torch/x.py": OLD.encode()}) == {"torch/x.py": None, "torch/y.py": NEW.encode()}


def test_a_binary_file_and_one_that_the_wheel_lacks(tmp_path: Path) -> None:
    name = "torch/x.json"
    binary = f"diff --git a/{name} b/{name}\nindex 1..2 100644\nBinary files a/{name} and b/{name} differ\n"
    for text in (binary, diff(OLD, NEW, "torch/_dynamo/none.py")):
        with pytest.raises(InstallFailed) as refused:
            apply_patch(read(tmp_path, text), {})
        assert refused.value.reason == "patch-does-not-apply"
        assert "torch/" in str(refused.value), refused.value


def test_a_diff_that_the_build_has_already_is_told(tmp_path: Path) -> None:
    patch = read(tmp_path, diff(OLD, NEW))
    with pytest.raises(InstallFailed, match="has what it adds already"):
        apply_patch(patch, {PATH: NEW.encode()})
    with pytest.raises(InstallFailed, match="lacks what it adds already"):
        apply_patch(patch, {PATH: OLD.encode()}, reverse=True)
    with pytest.raises(InstallFailed, match="does not apply here"):
        apply_patch(patch, {PATH: b"a = 1\nb = 3\nc = 3\n"})


def test_fuzz_is_refused_and_an_offset_is_not(tmp_path: Path) -> None:
    """``patch`` would take a line of context that differs; git does not."""
    old = "".join(f"line {number}\n" for number in range(9))
    patch = read(tmp_path, diff(old, old.replace("line 4\n", "line four\n")))
    moved = "first\n" * 5 + old
    assert apply_patch(patch, {PATH: moved.encode()})[PATH] == moved.replace("line 4\n", "line four\n").encode()
    with pytest.raises(InstallFailed, match="does not apply"):
        apply_patch(patch, {PATH: old.replace("line 1\n", "line one\n").encode()})


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


def test_a_merged_pull_request_is_read_from_a_clone(repository: Repository) -> None:
    """The newest commit counts, as one that was reverted may have landed again; a revert is none."""

    def landed(text: str, subject: str) -> str:
        (repository.folder / PATH).parent.mkdir(parents=True, exist_ok=True)
        (repository.folder / PATH).write_text(text)
        repository.git("add", ".")
        repository.git("commit", "-qm", f"{subject}\n\nLike (#16).")
        return repository.git("rev-parse", "HEAD")

    landed(OLD, "Base (#1)")
    landed(OLD + "first\n", "Fix (#161)")
    landed(OLD, 'Revert "Fix (#161)"')
    landed(NEW, "Fix (#161)")
    landed(NEW + "more\n", "Another (#1610)")
    history = History.open(str(repository.folder), repository.folder / "cache")
    patch = read_patch("#161", lambda: history, mirrored=True)
    assert (patch.name, patch.objects is not None) == ("#161", True)
    assert apply_patch(patch, {PATH: OLD.encode()}) == {PATH: NEW.encode()}
    assert history.commit_of_pull(16) is None


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


@pytest.mark.parametrize("text", [b"", b"some words\n", b"\xff\xfe\x00"])
def test_a_file_without_a_diff(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "fix.diff").write_bytes(text)
    with pytest.raises(InputError, match="there is no diff in it"):
        read_patch(str(tmp_path / "fix.diff"), no_history)


@pytest.mark.parametrize("name", ["no-such.diff", "#", "161036x", "pytorch/vision#3"])
def test_a_name_that_is_nothing(name: str) -> None:
    with pytest.raises(InputError, match="--patch"):
        read_patch(name, no_history)
