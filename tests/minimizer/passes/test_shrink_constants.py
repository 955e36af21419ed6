"""Numbers shrink."""

from __future__ import annotations

import pytest
from pass_runner import after


@pytest.mark.parametrize(
    ("program", "words", "left"),
    [
        ("keep(torch.randn(17, 32, 32), 0.25)", ["keep", "3"], "keep(torch.randn(1, 1, 3), 1)"),
        ("keep(x.view(4, 8), y.view(32))", ["keep"], "keep(x.view(1, 1), y.view(1))"),
    ],
)
def test_numbers_shrink(program: str, words: list[str], left: str) -> None:
    assert left in after("shrink_constants", program, *words)
