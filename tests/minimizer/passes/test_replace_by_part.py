"""Expressions give way to their parts."""

from __future__ import annotations

import pytest
from pass_runner import after


@pytest.mark.parametrize(
    ("program", "words", "left"),
    [
        ("keep(torch.relu(x.view(2) @ w) + 1)", ["keep", "w"], "keep(w)"),
        ("keep(x * torch.relu(y))", ["keep", "x *"], "keep(x * 2)"),
        ("keep(torch.relu(y) - x)", ["keep", "x -"], "keep(x - 2)"),
        ("y = torch.sigmoid(x)\ny.detach_()", ["x ", "y.detach_()"], "y = x * 1\n"),
        ("y = x.sigmoid(dim=1)\ny.detach_()", ["x ", "y.detach_()"], "y = x * 1\n"),
        ("keep(x if y.grad else z())", ["keep", "*", "y.grad"], "keep(y.grad * 2)"),
        ("try:\n    y[x['a']]\nexcept E:\n    keep()", ["['a']", "keep"], "    x['a']\n"),
        ("keep(torch.tensor([[0]]))", ["keep", "tensor"], "keep(torch.tensor(0))"),
        ("keep(Model().eval()(x))", ["keep", "Model()", "x"], "keep(Model()(x))"),
    ],
)
def test_expressions_give_way_to_their_parts(program: str, words: list[str], left: str) -> None:
    assert left in after("replace_by_part", program, *words)


def test_an_item_of_an_iterator_gives_way_to_what_is_iterated() -> None:
    text = after("replace_by_part", "y = keep(next(iter(x)))", "keep(x)")
    assert text == "y = keep(x)"
