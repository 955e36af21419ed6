"""Each parser of bytes from outside returns, or raises an error of the project, in little time and memory.

``benchmarks/fuzz.py`` tries the same parsers for as long as one likes.
"""

from __future__ import annotations

import contextlib
import time
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from outside_parsers import PARSERS, Parser

from torchbisect.containers.docker.engine import Engine
from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.core.errors import InputError, MachineError
from torchbisect.probe.module_sources import module_source
from torchbisect.triage.issue_input import read_post

SECONDS = 2.0
#: A reader of files asks for as many bytes as a file may have, 64 MiB.
BYTES = 192 << 20


def check(parser: Parser, text: object) -> None:
    """Parse a text; fail if that takes long, or raises another error than those of the parser."""
    before = time.process_time()
    with contextlib.suppress(*parser.errors):
        parser.parse(text)
    assert time.process_time() - before < SECONDS


#: Texts that once ended in another error.
FOUND = [
    ("script-name", "::" + "x" * 300),
    ("script-name", "x" * 5000 + ".py"),
    ("script", f"import {'a' * 300}\nfrom .{'b' * 5000} import c\n"),
    ("script", "x = p.parents[" + "9" * 5000 + "]\n"),
    ("nvidia-smi", f"x, 550, {'9' * 5000}.0"),
    ("build", "9" * 5000),
    ("process-owner", "b.n.².1"),
    ("git-log", "\0a\0b"),
    ("pip-configuration", "global.index-url={[]: 1}"),
    ("uv-configuration", "extra-index-url = 3"),
    ("database-row", {"labels": "[" * 300}),
    ("notebook", '{"cells": [{"cell_type": "code", "source": "' + "(" * 5000 + '"}]}'),
]


@pytest.mark.parametrize(("name", "text"), FOUND)
def test_a_text_that_was_found(name: str, text: object) -> None:
    check(PARSERS[name], text)


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
