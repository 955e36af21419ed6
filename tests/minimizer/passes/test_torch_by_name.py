"""Torch is named ``torch``."""

from __future__ import annotations

from pass_runner import after


def test_an_alias_of_torch_is_replaced_by_its_name() -> None:
    assert "import torch\nkeep(torch.ones(2))" in after("torch_by_name", "import torch as th\nkeep(th.ones(2))", "keep")
