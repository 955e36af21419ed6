"""Torch is named from one import."""

from __future__ import annotations

import pytest
from pass_runner import after


@pytest.mark.parametrize(
    ("step", "program", "words", "left"),
    [
        ("imports", "import torch\nimport torch.nn.functional as F\nkeep(F.relu(x))", ["keep"], "keep(torch.relu(x))"),
        (
            "imports.torch_by_name",
            "import torch as th\nkeep(th.ones(2))",
            ["keep"],
            "import torch\nkeep(torch.ones(2))",
        ),
    ],
)
def test_torch_is_named_from_one_import(step: str, program: str, words: list[str], left: str) -> None:
    assert left in after(step, program, *words)
