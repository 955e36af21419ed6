"""What is kept of a flood of output is the same however it came through the pipe."""

from __future__ import annotations

import os

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytest.importorskip("torch")

from torchbisect.probe.agent.run.fork import KEPT_TAIL, _Capture

pytestmark = pytest.mark.torch

HEAD = 1000


def captured(written: bytes, sizes: list[int]) -> str:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    capture, place, turn = _Capture(reader, HEAD), 0, 0
    while place < len(written):
        size = sizes[turn % len(sizes)]
        os.write(writer, written[place : place + size])
        place, turn = place + size, turn + 1
        capture.drain()
    os.close(writer)
    while capture.open:
        capture.drain()
    os.close(reader)
    return capture.text()


@settings(max_examples=15)
@given(st.integers(0, 8), st.integers(0, KEPT_TAIL), st.lists(st.integers(1 << 12, 1 << 16), min_size=1, max_size=5))
@example(5, 12345, [10000])
def test_the_pieces_do_not_matter(tails: int, rest: int, sizes: list[int]) -> None:
    size = tails * KEPT_TAIL + rest
    written = bytes(65 + number % 26 for number in range(size))
    kept = captured(written, sizes)
    assert kept == captured(written, [1 << 16])
    assert kept[:HEAD].encode() == written[:HEAD]
    assert kept.encode().endswith(written[-100:])
