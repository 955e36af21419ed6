"""Side effects of expressions are told from their text."""

from __future__ import annotations

import pytest

from torchbisect.minimizer.syntax.tree import expression
from torchbisect.minimizer.unused import may_have_side_effects


@pytest.mark.parametrize(
    ("value", "acts"),
    [
        ("torch.ones(2) + math.sqrt(x.view(2).sum())", False),
        ("[len(a) for a in b]", False),
        ("nn.Linear(2, 3)", False),
        ("Config()", True),
        ("model.attach()", True),
        ("x.add_(1)", True),
        ("torch.manual_seed(1)", True),
        ("layer.register_forward_hook(f)", True),
        ("own.method()", True),
        ("(y := 1)", True),
        ("print(x)", True),
    ],
)
def test_side_effects_are_told_from_the_text(value: str, acts: bool) -> None:
    assert may_have_side_effects(expression(value), {"torch", "math", "nn"}, {"method"}) is acts
