"""The search for the culprit among commits, by their Python files."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytorch_clone import Clone

from torchbisect.bisect.search.evidence import BoundaryKind, BuildAnswer, BuildStatus
from torchbisect.bisect.sources.commit_search import commits_between, find_culprit
from torchbisect.bisect.sources.history import Commit, History
from torchbisect.bisect.sources.python_files import is_replaceable, native_changes
from torchbisect.containers.environment import Facts
from torchbisect.core.errors import InputError


def test_the_commits_between_two_nightlies(clone: Clone, history: History) -> None:
    shas = clone.git("log", "--format=%H", "nightly").splitlines()
    older, newer = (Facts(name, sha, "3.11", "x") for name, sha in (("older", shas[1]), ("newer", shas[0])))
    span = commits_between(history, older, newer)
    assert (span.base.sha, [commit.sha for commit in span.commits]) == (clone.shas[1], clone.shas[2:5])
    assert span.compare.endswith(f"/compare/{clone.shas[1]}...{clone.shas[4]}")
    assert commits_between(history, newer, newer).commits == ()
    with pytest.raises(InputError, match="doesn't know torch stranger"):
        commits_between(history, older, Facts("stranger", "f" * 40, "3.11", "x"))


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
