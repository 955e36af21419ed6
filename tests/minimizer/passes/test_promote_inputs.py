"""Computations give way to inputs that require a gradient."""

from __future__ import annotations

import re

from torchbisect.core.verdict import Answer, Verdict
from torchbisect.minimizer.minimize import minimize


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
