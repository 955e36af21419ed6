"""The time to read an issue grows with its length and no faster, whatever it holds."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from repeated import PIECES

from torchbisect.triage.issues.body import MAX_CHARACTERS, read_issue

pytestmark = pytest.mark.slow

AROUND: dict[str, Callable[[str], str]] = {
    "plain": lambda text: text,
    "heading": lambda text: f"## {text}x\n",
    "fenced": lambda text: f"```python\nimport torch\n{text}\n```\n",
    "fence-line": lambda text: f"```{text}`\nimport torch\n",
    "ended": lambda text: f"import torch\n{text}\n!",
}


def seconds(body: str) -> float:
    """Return the processor time to read a body, the lesser of two."""
    found = []
    for _ in range(2):
        before = time.process_time()
        read_issue(body)
        found.append(time.process_time() - before)
    return min(found)


def test_a_long_heading_is_read_quickly() -> None:
    """A regular expression that backtracks took 75 seconds."""
    assert seconds(f"## {' ' * 65_000}x\n") < 1.0


@pytest.mark.parametrize("around", ["plain", "fence-line"])
def test_a_body_of_one_piece_is_read_quickly(around: str) -> None:
    for name, piece in PIECES.items():
        assert seconds(AROUND[around](piece * (4_096 // len(piece)))) < 1.0, name


# Each piece in one surrounding; in all of them where TORCHBISECT_ALL_BODIES is set.
GROWING = [
    (name, around)
    for number, name in enumerate(PIECES)
    for place, around in enumerate(AROUND)
    if number % len(AROUND) == place or os.environ.get("TORCHBISECT_ALL_BODIES")
]


@pytest.mark.long
@pytest.mark.parametrize(("name", "around"), GROWING)
def test_four_times_the_text_takes_about_four_times_as_long(name: str, around: str) -> None:
    piece = PIECES[name]
    quarter, whole = (seconds(AROUND[around](piece * (size // len(piece)))) for size in (15_000, 60_000))
    # Quadratic time would be 16 times as long. Below half a second the clock and the fixed costs decide.
    assert whole < max(0.5, 6.0 * quarter)


@given(
    st.lists(st.sampled_from(sorted(PIECES.values())), min_size=1, max_size=6),
    st.lists(st.sampled_from(sorted(PIECES.values())), max_size=3),
    st.sampled_from(sorted(AROUND)),
)
@settings(deadline=None)
def test_mixed_pieces_are_read_quickly(pieces: list[str], end: list[str], around: str) -> None:
    unit = "".join(pieces)
    assert seconds(AROUND[around](unit * (8_192 // len(unit) + 1) + "".join(end))) < 2.0


def test_a_body_that_is_too_long_is_cut_and_that_is_said() -> None:
    issue = read_issue("x" * MAX_CHARACTERS + "\n```python\nimport torch\n```\n")
    assert issue.script is None
    assert any("characters were read" in note for note in issue.notes)


def test_reading_ends_at_its_limit() -> None:
    issue = read_issue("```python\nimport torch\n```\n" * 2_000, seconds=0.0)
    assert issue.missing == ("a body that can be read within 0 s",)
