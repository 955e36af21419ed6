"""The journal: whatever happens to a process or its disk, every finished answer is kept and none is made up."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchbisect.core.decode import decode
from torchbisect.core.errors import DiskFull, InputError
from torchbisect.core.verdict import Answer, Verdict
from torchbisect.probe.journal import MOST_BYTES, Journal
from torchbisect.probe.judge.observation import Observation
from torchbisect.probe.known_answers import verdict_from_json

_VALUES = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
_ENTRIES = st.dictionaries(st.text(max_size=6), _VALUES, max_size=5)


def keys_of(path: Path) -> set[str]:
    """Return the keys of the whole lines of a file, each of which a new journal must answer."""
    lines = path.read_bytes().split(b"\n")[:-1]
    keys = {json.loads(line)["key"] for line in lines}
    journal = Journal(path)
    assert all(journal.get(key) is not None for key in keys)
    return keys


@pytest.fixture(scope="module")
def folder() -> Path:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@settings(max_examples=15)
@given(_ENTRIES)
def test_answers_outlive_the_process(folder: Path, entries: dict[str, object]) -> None:
    path = folder / "journal.jsonl"
    path.unlink(missing_ok=True)
    journal = Journal(path)
    for key, value in entries.items():
        journal.put(key, value)
    again = Journal(path)
    assert {key: again.get(key) for key in entries} == entries
    assert len(path.read_text().splitlines() if path.exists() else []) == len(entries)


@settings(max_examples=25)
@given(_ENTRIES, st.data())
def test_a_torn_file_keeps_its_whole_lines_and_takes_new_ones(
    folder: Path, entries: dict[str, object], data: st.DataObject
) -> None:
    path = folder / "torn.jsonl"
    path.unlink(missing_ok=True)
    journal = Journal(path)
    path.touch()
    ends = []
    for key, value in entries.items():
        journal.put(key, value)
        ends.append((key, path.stat().st_size))
    cut = data.draw(st.integers(0, path.stat().st_size))
    os.truncate(path, cut)
    torn = Journal(path)
    kept = {key for key, end in ends if end <= cut}
    for key, value in entries.items():
        assert torn.get(key) == (value if key in kept else None)
    torn.put("after", [1])
    again = Journal(path)
    assert again.get("after") == [1]
    assert all(again.get(key) == entries[key] for key in kept if key != "after")


def test_foreign_lines_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b'nonsense\n[1]\n{"key": 3, "value": 1}\n{"key": "a"}\n\xff\xfe\n{"key": "b", "value": 2}\n')
    journal = Journal(path)
    assert [journal.get(key) for key in ("3", "a", "b")] == [None, None, 2]
    told: list[str] = []
    journal.tell(told.append)
    assert [line for line in range(1, 8) if any(f"journal.jsonl, line {line} is ignored" in text for text in told)] == [
        1, 2, 3, 4, 5
    ]  # fmt: skip


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 100_000,
        b'{"key": "a", "value": ' + b"[" * 500 + b"]" * 500 + b"}",
        b'{"key": "a", "value": ' + b"9" * 5000 + b"}",
        b'{"key": "a", "key": "b", "value": 1}',
        b'{"key": "a", "value": 1e999}',
        b'{"key": "a", "value": [' + b"1," * 2_000_000 + b"1]}",
        b'{"key": "a", "value": "' + b"x" * (65 << 20) + b'"}',
        b'{"key": "a", "va',
    ],
    ids=["deep", "deep-value", "digits", "twice", "infinite", "wide", "long", "torn"],
)
def test_a_hostile_line_is_lost_by_name(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b'{"key": "first", "value": 1}\n' + line + b'\n{"key": "last", "value": 2}\n')
    journal, told = Journal(path), []
    journal.tell(told.append)
    assert [journal.get(key) for key in ("first", "a", "last")] == [1, None, 2]
    assert len(told) == 1
    assert f"{tmp_path.name}/journal.jsonl, line 2 is ignored" in told[0]
    journal.put("a", 3)
    assert Journal(path).get("a") == 3


@pytest.mark.parametrize(
    "value",
    [3, "x", [], {}, {"answer": "same"}, {"answer": "maybe", "seconds": 1.0}, {"answer": "same", "seconds": "long"},
     {"answer": ["same"]}, {"answer": "same", "detail": {}}, {"answer": "same", "reason": 3}],
)  # fmt: skip
def test_a_value_of_another_shape_is_lost_by_name(tmp_path: Path, value: object) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text(json.dumps({"key": "a", "value": value}) + "\n")
    journal, told = Journal(path), []
    journal.tell(told.append)
    right = value == {"answer": "same"}
    assert (journal.get("a", partial(decode, Verdict)) == Verdict(Answer.SAME)) is right
    assert [text for text in told if "line 1 is ignored" in text] == told
    assert len(told) == (0 if right else 1)
    journal.put("a", {"answer": "none"})
    assert journal.get("a", partial(decode, Verdict)) == Verdict(Answer.NONE)


def test_lines_that_another_process_adds_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal, told = Journal(path), []
    journal.tell(told.append)
    for number in range(3):
        with path.open("ab") as file:
            file.write(b'{"key": "%d", "value": 1}\nnonsense %d' % (number, number))
        assert journal.get(str(number)) == 1
        with path.open("ab") as file:
            file.write(b"\n")
    assert journal.get("missing") is None
    assert [text.partition(" is ignored")[0].rpartition(" ")[2] for text in told] == ["2", "4", "6"]


def test_answers_of_another_process_are_read(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    mine, other = Journal(path), Journal(path)
    other.put("question", {"answer": "same"})
    assert mine.get("question") == {"answer": "same"}


_WRITER = """\
import sys
from pathlib import Path
from torchbisect.probe.journal import Journal
journal = Journal(Path(sys.argv[1]))
print("ready", flush=True)
for number in range(int(sys.argv[3])):
    journal.put(f"{sys.argv[2]}-{number}", "x" * 3000)
"""


def _writer(path: Path, name: str, count: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", _WRITER, str(path), name, str(count)], stdout=subprocess.PIPE)


def test_two_processes_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    writers = [_writer(path, name, 40) for name in "ab"]
    assert [writer.wait() for writer in writers] == [0, 0]
    assert len(keys_of(path)) == 80
    assert all(json.loads(line) for line in path.read_bytes().splitlines())


def test_threads_share_a_journal(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    other, mine = Journal(path), Journal(path)
    for number in range(200):
        other.put(str(number), number + 1)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(mine.get, map(str, range(200)))) == list(range(1, 201))
        list(pool.map(lambda number: mine.put(f"mine {number}", 1), range(100)))
    keys = keys_of(path)
    assert len(keys) == 300
    assert all(mine.get(key) is not None for key in keys)


def test_a_killed_process_loses_at_most_the_last_line(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    writer = _writer(path, "a", 10**6)
    assert writer.stdout is not None
    writer.stdout.readline()
    while not path.exists() or path.stat().st_size < 30_000:
        assert writer.poll() is None
    writer.kill()
    writer.wait()
    journal = Journal(path)
    kept = len(keys_of(path))
    assert all(journal.get(f"a-{number}") == "x" * 3000 for number in range(kept))
    journal.put("next", 1)
    again = Journal(path)
    assert all(again.get(f"a-{number}") == "x" * 3000 for number in range(kept))
    assert again.get("next") == 1


def test_a_full_disk_raises_and_keeps_the_earlier_answers(tmp_path: Path) -> None:
    """A limit on the size of files stands in for the disk: the system cuts a write short in the same way."""
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    journal.put("kept", "x" * 1000)
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1500, hard))
    try:
        with pytest.raises(DiskFull, match="no room"):
            journal.put("too much", "y" * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before
    journal.put("too much", "y" * 1000)
    assert len(keys_of(path)) == 2


def test_a_journal_that_is_too_large_is_named(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    journal.put("a", 1)
    os.truncate(path, MOST_BYTES)
    with pytest.raises(InputError, match="2 GiB: remove it"):
        journal.put("b", 2)
    assert path.stat().st_size == MOST_BYTES
    os.truncate(path, MOST_BYTES + 1)
    for _ in range(2):
        with pytest.raises(InputError, match="2 GiB: remove it"):
            Journal(path)


def test_an_unreadable_journal_raises_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="can't be used"):
        Journal(tmp_path).get("x")


def test_without_a_file_answers_are_kept_in_memory() -> None:
    journal = Journal()
    journal.put("a", 1)
    assert (journal.get("a"), journal.get("b")) == (1, None)


@pytest.mark.parametrize("number", [1e308, -1e308, 1e300, -1])
def test_times_that_cannot_be_are_no_crash(number: float) -> None:
    ending = {"how": "finished", "seconds": number, "allowed": number, "compile_seconds": number}
    seen = Observation.from_json({"eager": {**ending, "call_seconds": [number] * 9}, "compiled": ending})
    times = [seen.eager.seconds, seen.eager.allowed or 0, seen.eager.compile_seconds, *seen.eager.call_seconds]
    verdict = verdict_from_json({"answer": "same", "seconds": number})
    assert 0 <= sum(times) + verdict.seconds < 1e12
