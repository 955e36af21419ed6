"""The script takes the form that a maintainer would give it."""

from __future__ import annotations

import pytest
from pass_runner import after


@pytest.mark.parametrize(
    ("step", "program", "words", "left"),
    [
        (
            "idioms.short_forms",
            "def f(x):\n    return x + 1\nkeep(torch.compile(f)(y))",
            ["keep", "lambda"],
            "(lambda x: x + 1)",
        ),
        (
            "idioms.short_forms",
            "@torch.compile(backend='eager')\ndef f(x):\n    return torch.any(x, dim=0)\nkeep(f(y))",
            ["keep", "any"],
            "keep(torch.compile(torch.any, backend='eager')(y, dim=0))",
        ),
        (
            "idioms.short_forms",
            "def f(x):\n    return x.mul_(2)\ntorch.compile(f)(keep)",
            ["keep", "mul_"],
            "torch.compile(torch.Tensor.mul_)(keep, 2)",
        ),
        (
            "idioms.short_forms",
            "keep(torch.tensor([[float('nan'), float('nan')], [float('nan'), float('nan')]], dtype=d))",
            ["keep", "nan"],
            "keep(torch.full((2, 2), float('nan'), dtype=d))",
        ),
        (
            "idioms.short_forms",
            "def f(x):\n    if x > 1:\n        return a\n    return keep(x)\nf(1)\nf(2)",
            ["keep", "a"],
            "def f(x):\n    return a if x > 1 else keep(x)",
        ),
        ("idioms.names", "def helper(values):\n    return values\nweights = helper(keep)", ["keep"], "def f(x):"),
        (
            "idioms.names",
            "class Box:\n    size: int = 3\ndef helper(values):\n    return values\nsized = helper(Box(size=keep))",
            ["keep", "size"],
            "class Model:\n    size: int = 3\n\ndef f(x):\n    return x\ny = f(Model(size=keep))",
        ),
        ("idioms.names_together", "def k(y):\n    return y\nx = k(keep)", ["keep"], "def f(x):\n    return x\ny = f"),
        (
            "idioms.inputs",
            "def f():\n    keep(torch.ones(1))\nf()",
            ["keep"],
            "def f(x):\n    keep(x)\nf(torch.ones(1))",
        ),
    ],
)
def test_the_script_takes_the_form_that_a_maintainer_would_give_it(
    step: str, program: str, words: list[str], left: str
) -> None:
    assert left in after(step, program, *words)
