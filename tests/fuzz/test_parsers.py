"""Each parser of bytes from outside returns, or raises an error of the project, in little time and memory.

``benchmarks/fuzz.py`` tries the same parsers for as long as one likes.
"""

from __future__ import annotations

import contextlib
import json
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from outside_parsers import PARSERS, SECONDS, Parser

from torchbisect.containers.docker.engine import Engine
from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.core.errors import InputError, MachineError
from torchbisect.probe.module_sources import module_source
from torchbisect.triage.issue_input import read_post

#: A reader of files asks for as many bytes as a file may have, 64 MiB.
BYTES = 192 << 20


def check(parser: Parser, text: object) -> None:
    """Parse a text; fail if that takes long, or raises another error than those of the parser."""
    before = time.process_time()
    with contextlib.suppress(*parser.errors):
        parser.parse(text)
    assert time.process_time() - before < SECONDS


#: Texts that once ended in another error, a JSON object on a line each; ``benchmarks/fuzz.py --keep`` adds to it.
FOUND = [json.loads(line) for line in (Path(__file__).parent / "found.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("found", FOUND, ids=lambda found: found["parser"])
def test_a_text_that_was_found(found: dict[str, Any]) -> None:
    check(PARSERS[found["parser"]], found["text"])


def test_a_long_name_is_no_python_and_no_issue() -> None:
    for read in (Interpreter.of, read_post):
        with pytest.raises(InputError):
            read("a/b#1?" + "x" * 5000 if read is Interpreter.of else "x" * 5000)
    assert module_source("/", "x" * 5000) is None


def test_an_engine_without_an_address() -> None:
    with pytest.raises(MachineError, match="DOCKER_HOST"):
        Engine({"DOCKER_HOST": "http://["})


@pytest.mark.slow
@pytest.mark.parametrize("name", PARSERS)
@settings(max_examples=15)
@given(data=st.data())
def test_a_spoiled_text_is_read_or_refused(name: str, data: st.DataObject) -> None:
    parser = PARSERS[name]
    check(parser, data.draw(parser.texts))


@pytest.mark.long
@pytest.mark.parametrize("name", PARSERS)
@settings(max_examples=60)
@given(data=st.data())
def test_memory_is_bounded(name: str, data: st.DataObject) -> None:
    parser = PARSERS[name]
    text = data.draw(parser.texts)
    tracemalloc.start()
    try:
        with contextlib.suppress(*parser.errors):
            parser.parse(text)
        assert tracemalloc.get_traced_memory()[1] < BYTES
    finally:
        tracemalloc.stop()
