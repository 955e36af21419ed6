"""The history of a git repository with PyTorch's branches: main, nightly (by commit-tree), and a release branch."""

from __future__ import annotations

import datetime
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchbisect.bisect.search.evidence import BoundaryKind, BuildAnswer, BuildStatus
from torchbisect.bisect.sources.commit_search import commits_between, find_culprit
from torchbisect.bisect.sources.history import Commit, History, reverted_commit
from torchbisect.bisect.sources.python_files import changed_python, is_native, is_replaceable, native_changes
from torchbisect.bisect.sources.suspects import rank_suspects
from torchbisect.containers.environment import Facts
from torchbisect.core.errors import InputError, MachineError


@dataclass
class Clone:
    """A small repository with PyTorch's branches."""

    path: Path
    shas: list[str] = field(default_factory=list)
    _clock: int = 1_786_000_000

    def git(self, *arguments: str, text: str | None = None) -> str:
        self._clock += 60
        who = {f"GIT_{role}_{what}": "a@b.c" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        when = {f"GIT_{role}_DATE": f"{self._clock} +0000" for role in ("AUTHOR", "COMMITTER")}
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.path, input=text, capture_output=True, text=True, check=True,
            env={"PATH": os.environ["PATH"], "HOME": str(self.path), **who, **when},
        )  # fmt: skip
        return done.stdout.strip()

    def commit(self, message: str, files: dict[str, str | None]) -> str:
        for name, text in files.items():
            place = self.path / name
            if text is None:
                place.unlink()
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-F", "-", text=message)
        self.shas.append(self.git("rev-parse", "HEAD"))
        return self.shas[-1]

    def nightly(self, date: str, main: str) -> str:
        """Commit a nightly as test-infra's trigger-nightly does: main's tree on top of the nightly before."""
        parent = ["-p", "nightly"] if self.git("branch", "--list", "nightly") else []
        sha = self.git("commit-tree", *parent, f"{main}^{{tree}}", "-m", f"{date} nightly release ({main})")
        self.git("update-ref", "refs/heads/nightly", sha)
        return sha


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clone]:
    here = Clone(tmp_path_factory.mktemp("pytorch"))
    here.git("init", "-q", "-b", "main")
    here.commit("Base (#1)", {"torch/_dynamo/a.py": "a = 0\n", "torch/_inductor/b.py": "b = 0\n", "aten/x.cpp": "0"})
    here.commit(
        "[dynamo] Trace setitem (#2)\n\nPull Request resolved: https://github.com/pytorch/pytorch/pull/2",
        {"torch/_dynamo/a.py": "a = 1\n"},
    )
    here.commit("[inductor] Fuse more (#3)", {"torch/_inductor/b.py": "b = 1\n", "test/inductor/test_b.py": "1"})
    here.commit("Speed up add (#4)", {"aten/x.cpp": "1"})
    here.commit(
        'Revert "[inductor] Fuse more (#3)"\n\n'
        f"This reverts commit {here.shas[2]}.\n\n"
        "Reverted https://github.com/pytorch/pytorch/pull/3 on behalf of https://github.com/x due to a red build\n",
        {"torch/_inductor/b.py": "b = 0\n", "test/inductor/test_b.py": None},
    )
    here.commit(
        "Docs\n\nghstack-source-id: abc\nPull Request resolved: https://github.com/pytorch/pytorch/pull/6\n",
        {"docs/x.md": "x"},
    )
    here.nightly("2026-08-15", here.shas[1])
    here.nightly("2026-08-16", here.shas[1])
    here.nightly("2026-08-17", here.shas[4])
    here.git("checkout", "-q", "-b", "release/2.15", here.shas[3])
    here.commit("[cherry-pick] (#7)", {"torch/_dynamo/a.py": "a = 7\n"})
    here.git("checkout", "-q", "main")
    yield here
    shutil.rmtree(here.path)


@pytest.fixture
def history(clone: Clone, tmp_path: Path) -> History:
    return History.open(str(clone.path), tmp_path)


def test_the_commit_on_main_of_a_nightly(clone: Clone, history: History) -> None:
    days = history.nightlies()
    assert days == {
        datetime.date(2026, 8, 15): clone.shas[1],
        datetime.date(2026, 8, 16): clone.shas[1],
        datetime.date(2026, 8, 17): clone.shas[4],
    }
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


def test_the_commits_between_two_nightlies(clone: Clone, history: History) -> None:
    shas = clone.git("log", "--format=%H", "nightly").splitlines()
    older, newer = (Facts(name, sha, "3.11", "x") for name, sha in (("older", shas[1]), ("newer", shas[0])))
    span = commits_between(history, older, newer)
    assert (span.base.sha, [commit.sha for commit in span.commits]) == (clone.shas[1], clone.shas[2:5])
    assert span.compare.endswith(f"/compare/{clone.shas[1]}...{clone.shas[4]}")
    assert commits_between(history, newer, newer).commits == ()
    with pytest.raises(InputError, match="doesn't know torch stranger"):
        commits_between(history, older, Facts("stranger", "f" * 40, "3.11", "x"))


def test_the_changed_python_files_between_two_commits(clone: Clone, history: History) -> None:
    assert changed_python(history, clone.shas[0], clone.shas[3]) == {
        "torch/_dynamo/a.py": b"a = 1\n",
        "torch/_inductor/b.py": b"b = 1\n",
    }
    assert changed_python(history, clone.shas[0], clone.shas[0]) == {}


def test_an_address_is_cloned_once_and_then_fetched(clone: Clone, tmp_path: Path) -> None:
    clone.git("config", "uploadpack.allowFilter", "true")
    clone.git("config", "uploadpack.allowAnySHA1InWant", "true")
    url = clone.path.as_uri()
    said: list[str] = []
    first = History.open(url, tmp_path, notify=said.append)
    assert first.read(clone.shas[0], "torch/_dynamo/a.py") == b"a = 0\n"
    again = History.open(url, tmp_path, notify=said.append)
    assert again.nightlies() == first.nightlies()
    assert [line.split()[0] for line in said] == ["cloning", "fetching"]
    assert len(list(tmp_path.iterdir())) == 1
    again.prefetch_changes(clone.shas[0], clone.shas[3])
    subprocess.run(["git", "remote", "set-url", "origin", "nowhere"], cwd=next(tmp_path.iterdir()), check=True)
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
    assert list(tmp_path.iterdir()) == []


def test_suspects_have_reasons_and_reverted_commits_come_last(clone: Clone, history: History) -> None:
    between = history.between(clone.shas[0], clone.shas[5])
    by_stack = rank_suspects(between, "module: dynamo", ["torch/_dynamo/a.py"], ["setitem"])
    assert by_stack[0].commit.sha == clone.shas[1]
    assert by_stack[0].reasons == (
        "touches torch/_dynamo/a.py, in the failing stack",
        "its subject names the stage",
        "its subject names setitem",
    )
    by_stage = rank_suspects(between, "module: inductor")
    assert by_stage[0].commit.is_revert
    reverted = next(suspect for suspect in by_stage if suspect.commit.sha == clone.shas[2])
    assert reverted.score == 1
    assert reverted.reasons[-1] == "but it was reverted within the range"
    assert by_stage[-1].commit.sha == clone.shas[5]


@given(st.text(), st.text(alphabet="0123456789abcdef", min_size=40, max_size=40))
def test_any_message_can_be_read_for_a_revert(text: str, sha: str) -> None:
    reverted_commit(text)
    assert reverted_commit(f'Revert "Fix it"\n\nThis reverts commit {sha}.\n') == sha
    assert reverted_commit(f"Fix it\n\nThis reverts commit {sha}.\n") is None


@pytest.mark.parametrize(
    ("path", "replaceable", "native"),
    [
        ("torch/_dynamo/a.py", True, False),
        ("torchgen/gen.py", True, False),
        ("torch/_dynamo/graph_break_registry.json", True, False),
        ("torch/version.py", False, False),
        ("torch/csrc/dynamo/guards.cpp", False, True),
        ("aten/src/ATen/native/native_functions.yaml", False, True),
        ("test/dynamo/test_misc.py", False, False),
        ("tools/autograd/gen.py", False, False),
    ],
)
def test_replaceable_and_native_files(path: str, replaceable: bool, native: bool) -> None:
    assert (is_replaceable(path), is_native(path)) == (replaceable, native)


def commits(count: int) -> list[Commit]:
    start = datetime.datetime(2026, 8, 1, tzinfo=datetime.timezone.utc)
    files = [("torch/_dynamo/a.py",), ("aten/x.cpp",), ("docs/x.md", "torch/fx/y.py")]
    return [
        Commit(f"{number:040x}", f"Commit {number}", start, files=files[number % 3]) for number in range(1, count + 1)
    ]


@given(st.integers(2, 60), st.data(), st.sampled_from([BoundaryKind.REGRESSION, BoundaryKind.FIX]))
def test_the_culprit_is_found_among_the_python_changes(count: int, data: st.DataObject, kind: BoundaryKind) -> None:
    line = commits(count)
    replaceable = [commit for commit in line if is_replaceable(commit.files[-1])]
    culprit = data.draw(st.sampled_from(replaceable))
    broken = data.draw(st.sets(st.sampled_from(replaceable), max_size=3)) - {culprit, replaceable[-1]}
    after, before = (
        (BuildStatus.BAD, BuildStatus.GOOD) if kind is BoundaryKind.REGRESSION else (BuildStatus.GOOD, BuildStatus.BAD)
    )
    base = Commit("0" * 40, "Base", line[0].date)

    def ask(commit: Commit) -> BuildAnswer:
        if commit in broken:
            return BuildAnswer(BuildStatus.UNTESTABLE, "import-failed")
        return BuildAnswer(after if commit.sha >= culprit.sha else before)

    asked: list[str] = []
    found = find_culprit(base, line, ask, kind, on_answer=lambda entry: asked.append(entry.item.sha))
    assert found.boundary is not None
    inside = [skipped.item for skipped in found.boundary.between] + [found.boundary.after]
    assert culprit in inside
    assert found.commit in (culprit, None)
    assert found.commit is culprit or broken
    assert len(set(asked)) == len(asked)
    assert len(asked) <= 2 + len(replaceable).bit_length() + 1 + 3 * len(broken)


def test_the_reason_if_no_culprit_is_found() -> None:
    line = commits(9)
    base = Commit("0" * 40, "Base", line[0].date)
    found = find_culprit(base, line, lambda _: BuildAnswer(BuildStatus.GOOD))
    assert found.commit is None
    assert "the cause is not in the Python" in (found.why_not or "")
    assert len(found.result.tested) == 2
    odd = find_culprit(base, line, lambda _: BuildAnswer(BuildStatus.BAD))
    assert "with its own Python" in (odd.why_not or "")
    unfit = find_culprit(base, line, lambda _: BuildAnswer(BuildStatus.UNTESTABLE, "import-failed"))
    assert "import-failed" in (unfit.why_not or "")
    assert [commit.files[0] for commit in native_changes(line)] == ["aten/x.cpp"] * 3
    nothing = find_culprit(base, line[:0], lambda _: BuildAnswer(BuildStatus.BAD))
    assert "no commit in the range" in (nothing.why_not or "")
