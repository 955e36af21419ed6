"""The captured part of a long output does not depend on the sizes of the blocks read from the pipe."""

from __future__ import annotations

import os

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytest.importorskip("torch")

from torchbisect.probe.agent.run.fork import TAIL_BYTES, OutputCapture

pytestmark = pytest.mark.torch

HEAD_BYTES = 1000


def captured(written: bytes, sizes: list[int]) -> str:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    capture, place, turn = OutputCapture(reader, HEAD_BYTES), 0, 0
    while place < len(written):
        size = sizes[turn % len(sizes)]
        os.write(writer, written[place : place + size])
        place, turn = place + size, turn + 1
        capture.read_available()
    os.close(writer)
    while capture.is_open:
        capture.read_available()
    os.close(reader)
    return capture.text()


@settings(max_examples=15)
@given(st.integers(0, 8), st.integers(0, TAIL_BYTES), st.lists(st.integers(1 << 12, 1 << 16), min_size=1, max_size=5))
@example(5, 12345, [10000])
def test_the_captured_text_does_not_depend_on_block_sizes(tails: int, rest: int, sizes: list[int]) -> None:
    size = tails * TAIL_BYTES + rest
    written = bytes(65 + number % 26 for number in range(size))
    kept = captured(written, sizes)
    assert kept == captured(written, [1 << 16])
    assert kept[:HEAD_BYTES].encode() == written[:HEAD_BYTES]
    assert kept.encode().endswith(written[-100:])
