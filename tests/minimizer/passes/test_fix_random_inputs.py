"""A script that draws numbers becomes one that has the same numbers in every run."""

from __future__ import annotations

import pytest
from pass_runner import after


@pytest.mark.parametrize(
    ("made", "needed", "left"),
    [
        ("torch.randn(2, 3)", "ones", "f(torch.ones(2, 3))"),
        ("torch.rand(2)", "-", "f(-torch.ones(2))"),
        ("torch.randn(2, requires_grad=True)", "-1", "f(torch.full((2,), -1.0, requires_grad=True))"),
        ("torch.randn(4)", "linspace", "f(torch.linspace(-1, 1, 4))"),
        ("torch.randn(4)", "randn", "import torch\ntorch.manual_seed(0)\n"),
    ],
)
def test_drawn_numbers_become_the_plainest_that_show_the_mismatch(made: str, needed: str, left: str) -> None:
    assert left in after(
        "fix_random_inputs", f"import torch\n\nf({made})\n", needed, "f(torch" if needed != "-" else "f("
    )


def test_each_tensor_is_changed_alone_if_one_needs_its_numbers() -> None:
    program = "import torch\nf(torch.randn(2), torch.rand(3))\n"
    text = after("fix_random_inputs", program, "rand(3)")
    assert "torch.manual_seed(0)" in text
    assert "f(torch.ones(2), torch.rand(3))" in text


def test_a_seed_is_kept_while_numbers_are_drawn() -> None:
    program = "import torch\ntorch.manual_seed(0)\nprint(1)\nkeep(torch.{}(2))\n"
    assert "manual_seed" in after("delete.statements", program.format("randn"), "keep")
    assert "manual_seed" not in after("delete.statements", program.format("ones"), "keep")
