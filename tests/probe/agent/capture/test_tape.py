"""The tape keeps every appended entry, and reading it survives arbitrary bytes."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from torchbisect.probe.agent.capture.tape import Tape

facts = st.dictionaries(st.text(max_size=5), st.one_of(st.integers(), st.text(max_size=9), st.none()), max_size=3)
entries = st.lists(st.tuples(facts, st.lists(st.binary(max_size=40), max_size=3)), max_size=8)


@given(entries)
def test_entries_are_read_back(written: list[tuple[dict[str, object], list[bytes]]]) -> None:
    tape = Tape(1 << 16)
    for fact, chunks in written:
        assert tape.append(fact, chunks)
    assert [(entry.facts, entry.data) for entry in tape.entries()] == [(f, b"".join(c)) for f, c in written]
    tape.close()


@given(entries, st.integers(200, 600))
def test_a_full_tape_keeps_whole_entries_and_counts_dropped_ones(
    written: list[tuple[dict[str, object], list[bytes]]], size: int
) -> None:
    tape = Tape(size)
    kept = [(fact, b"".join(chunks)) for fact, chunks in written if tape.append(fact, chunks)]
    assert [(entry.facts, entry.data) for entry in tape.entries()] == kept
    assert tape.dropped == len(written) - len(kept)
    tape.close()


@given(entries, st.binary(min_size=16, max_size=200), st.integers(0, 400))
def test_a_tape_overwritten_by_a_script_is_still_readable(
    written: list[tuple[dict[str, object], list[bytes]]], noise: bytes, where: int
) -> None:
    tape = Tape(1 << 12)
    for fact, chunks in written:
        tape.append(fact, chunks)
    tape._map[where : where + len(noise)] = noise
    for entry in tape.entries():
        assert isinstance(entry.facts, dict)
    tape._map[:16] = struct.pack("<QQ", 1 << 60, 0)
    assert all(isinstance(entry.facts, dict) for entry in tape.entries())
    tape.close()
