"""Computations give way to arguments."""

from __future__ import annotations

import re

import pytest
from pass_runner import after

from torchbisect.core.verdict import Answer, Verdict
from torchbisect.minimizer.minimize import minimize


@pytest.mark.parametrize(
    ("program", "words", "left"),
    [
        ("def f(x, y):\n    z = x * 2\n    return torch.cat((z, z))\nf(keep, 1)", ["keep"], "return x"),
    ],
)
def test_a_result_gives_way_to_an_argument(program: str, words: list[str], left: str) -> None:
    assert left in after("replace_by_argument.results", program, *words)


def test_a_layer_gives_way_to_an_input_that_requires_a_gradient() -> None:
    program = (
        "import torch\n\nlayer = torch.nn.Linear(1, 1)\n\n@torch.compile\ndef f(y):\n    z = torch.tensor([1.0])\n"
        "    z[:] = layer(y)\n    return z.requires_grad\n\nassert f(torch.ones(1))\n"
    )

    def ask(source: str) -> Verdict:
        layer = "torch.nn.Linear(1, 1)\n" in source and re.search(r"\[:\] = \w+\(\w+\)", source)
        kept = all(
            part in source for part in ("compile", "tensor([1.0])", "[:] = ", "return", ".requires_grad\n", "assert f(")
        )
        shows = kept and "ones(1" in source and (layer or "ones(1, requires_grad=True)" in source)
        return Verdict(Answer.SAME if shows else Answer.NONE)

    found = minimize(program, ask).source
    assert "Linear" not in found
    assert "requires_grad=True" in found
