"""Layers and parameters give way to what they compute and hold."""

from __future__ import annotations

import pytest
from pass_runner import after


@pytest.mark.parametrize(
    ("program", "words", "left"),
    [
        ("l = torch.nn.Linear(2, 3)\nkeep(l(x))", ["keep"], "keep(x)"),
        ("keep(torch.nn.Parameter(torch.ones(1)))", ["keep", "grad"], "ones(1, requires_grad=True)"),
    ],
)
def test_layers_give_way(program: str, words: list[str], left: str) -> None:
    assert left in after("replace_layers", program, *words)
