"""The tape keeps what was laid down, whatever comes after; the bundle carries every module of the agent."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import torchbisect.probe.agent
from torchbisect.probe.agent.capture.tape import Tape
from torchbisect.probe.agent_bundle import BOOT, PACKAGE, payload

facts = st.dictionaries(st.text(max_size=5), st.one_of(st.integers(), st.text(max_size=9), st.none()), max_size=3)
entries = st.lists(st.tuples(facts, st.lists(st.binary(max_size=40), max_size=3)), max_size=8)


@given(entries)
def test_what_is_laid_down_is_read_back(written: list[tuple[dict[str, object], list[bytes]]]) -> None:
    tape = Tape(1 << 16)
    for fact, chunks in written:
        assert tape.append(fact, chunks)
    assert [(entry.facts, entry.data) for entry in tape.entries()] == [(f, b"".join(c)) for f, c in written]
    tape.close()


@given(entries, st.integers(200, 600))
def test_a_full_tape_keeps_whole_entries_and_counts_the_rest(
    written: list[tuple[dict[str, object], list[bytes]]], size: int
) -> None:
    tape = Tape(size)
    kept = [(fact, b"".join(chunks)) for fact, chunks in written if tape.append(fact, chunks)]
    assert [(entry.facts, entry.data) for entry in tape.entries()] == kept
    assert tape.lost == len(written) - len(kept)
    tape.close()


@given(entries, st.binary(min_size=16, max_size=200), st.integers(0, 400))
def test_a_tape_that_a_script_scribbled_on_is_still_read(
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


def test_the_bundle_has_every_module_and_only_readable_source() -> None:
    sources = json.loads(zlib.decompress(base64.b64decode(payload())))
    folder = Path(next(iter(torchbisect.probe.agent.__path__)))
    names = [path.relative_to(folder).with_suffix("").parts for path in folder.rglob("*.py")]
    modules = {".".join((PACKAGE, *(part for part in parts if part != "__init__"))) for parts in names}
    assert set(sources) == modules
    for name, source in sources.items():
        compile(source, name, "exec")
    compile(BOOT, "boot", "exec")
    assert payload().count(b"\n") == 1
