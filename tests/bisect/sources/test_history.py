"""The history of a git repository with PyTorch's branches: main, nightly, and a release branch."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytorch_clone import Clone

from torchbisect.bisect.sources.history import History, reverted_commit
from torchbisect.core.errors import InputError, MachineError


def test_the_commit_on_main_of_a_nightly(clone: Clone, history: History) -> None:
    nightlies = clone.git("log", "--reverse", "--format=%H", "nightly").splitlines()
    assert [history.main_commit(sha) for sha in nightlies] == [clone.shas[1], clone.shas[1], clone.shas[4]]
    assert history.main_commit(clone.git("rev-parse", "nightly")) == clone.shas[4]
    assert history.main_commit(clone.shas[2]) == clone.shas[2]
    assert history.main_commit("0" * 40) is None
    assert history.main_commit("Unknown") is None


def test_the_commits_between_two_commits(clone: Clone, history: History) -> None:
    between = history.between(clone.shas[0], clone.shas[5])
    assert [commit.sha for commit in between] == clone.shas[1:6]
    assert [commit.reverts for commit in between] == [None, None, None, clone.shas[2], None]
    assert history.commit(clone.shas[2]) == between[1]
    assert between[1].files == ("test/inductor/test_b.py", "torch/_inductor/b.py")
    assert str(between[0]) == f"{clone.shas[1][:10]} [dynamo] Trace setitem (#2)"
    with pytest.raises(InputError, match="not in the history"):
        history.between(clone.shas[6], clone.shas[5])
    with pytest.raises(InputError, match="no commit ffffffffff"):
        history.between("f" * 40, clone.shas[5])


def test_a_message_with_any_characters_is_one_commit(clone: Clone, history: History) -> None:
    first = clone.git("rev-parse", "HEAD")
    tree = clone.git("rev-parse", "HEAD^{tree}")
    message = "Sep\x1e\x1farate\x01 (#9)\n\n\x1ea\x1f1\x1fb\x1f\n\x85\u2028x"
    second = clone.git("commit-tree", "-p", first, tree, "-F", "-", text=message)
    (commit,) = history.between(first, second)
    assert (commit.sha, commit.subject, commit.files) == (second, "Sep\x1e\x1farate\x01 (#9)", ())


def test_a_time_that_no_calendar_has(clone: Clone, history: History) -> None:
    first = clone.git("rev-parse", "HEAD")
    text = clone.git("cat-file", "commit", first)
    people = ("author a@b.c <a@b.c> 9223372036854775807 +0000", "committer a@b.c <a@b.c> 9223372036854775807 +0000")
    body = "\n".join([*(line for line in text.split("\n\n")[0].splitlines()[:-2]), *people, "", "Late\n"])
    late = clone.git("hash-object", "-t", "commit", "-w", "--literally", "--stdin", text=body)
    assert history.commit(late).subject == "Late"


def test_an_address_is_cloned_once_and_then_fetched(clone: Clone, tmp_path: Path) -> None:
    clone.git("config", "uploadpack.allowFilter", "true")
    clone.git("config", "uploadpack.allowAnySHA1InWant", "true")
    url = clone.path.as_uri()
    said: list[str] = []
    first = History.open(url, tmp_path, notify=said.append)
    assert first.read(clone.shas[0], "torch/_dynamo/a.py") == b"a = 0\n"
    again = History.open(url, tmp_path, notify=said.append)
    newest = clone.git("rev-parse", "nightly")
    assert again.main_commit(newest) == first.main_commit(newest) == clone.shas[4]
    assert [line.split()[0] for line in said] == ["cloning", "fetching"]
    assert [path.suffix for path in sorted(tmp_path.iterdir())] == [".git", ".lock"]
    again.prefetch_changes(clone.shas[0], clone.shas[3])
    subprocess.run(["git", "remote", "set-url", "origin", "nowhere"], cwd=next(tmp_path.glob("*.git")), check=True)
    assert again.read(clone.shas[3], "torch/_inductor/b.py") == b"b = 1\n"
    with pytest.raises(InputError, match=r"torch/_dynamo/a\.py can't be read"):
        again.read(clone.shas[6], "torch/_dynamo/a.py")


def test_a_folder_without_a_clone_is_rejected_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no git repository: name a clone of PyTorch with --git"):
        History.open(str(tmp_path), tmp_path)
    with pytest.raises(InputError):
        History.open(str(tmp_path / "missing"), tmp_path)
    with pytest.raises(MachineError, match="can't be cloned"):
        History.open((tmp_path / "missing").as_uri(), tmp_path)
    assert [path.suffix for path in tmp_path.iterdir()] == [".lock"]


@given(st.text(), st.text(alphabet="0123456789abcdef", min_size=40, max_size=40))
def test_any_message_can_be_read_for_a_revert(text: str, sha: str) -> None:
    reverted_commit(text)
    assert reverted_commit(f'Revert "Fix it"\n\nThis reverts commit {sha}.\n') == sha
    assert reverted_commit(f"Fix it\n\nThis reverts commit {sha}.\n") is None
