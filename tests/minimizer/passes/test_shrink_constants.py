"""Numbers shrink."""

from __future__ import annotations

import re

import pytest
from pass_runner import after

from torchbisect.core.verdict import Answer, Verdict
from torchbisect.minimizer.minimize import minimize


@pytest.mark.parametrize(
    ("program", "words", "left"),
    [
        ("keep(torch.randn(17, 32, 32), 0.25)", ["keep", "3"], "keep(torch.randn(1, 1, 3), 1)"),
        ("keep(x.view(4, 8), y.view(32))", ["keep"], "keep(x.view(1, 1), y.view(1))"),
        ("for step in range(8):\n    keep(step)", ["keep"], "for step in range(1):"),
    ],
)
def test_numbers_shrink(program: str, words: list[str], left: str) -> None:
    assert left in after("shrink_constants", program, *words)


@pytest.mark.parametrize("needed", [3, 6, 7, 8, 29])
def test_the_rounds_of_a_loop_that_nothing_needs_go(needed: int) -> None:
    def ask(source: str) -> Verdict:
        rounds = re.search(r"range\((\d+)\)", source)
        return Verdict(Answer.SAME if rounds and int(rounds[1]) >= needed else Answer.NONE)

    program = "import torch\nfor x in range(30):\n    torch.compile(f)(x)"
    assert f"range({needed})" in minimize(program, ask).source
