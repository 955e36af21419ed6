"""Operators that a script calls."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from torchbisect.triage.script_operators import called_operators


def test_called_operators() -> None:
    source = (
        "import torch\ndef f(x):\n    y = x.sin() + torch.cumsum(x, 0)\n    y[0] = 1\n    return y\nf(torch.ones(3))\n"
    )
    assert called_operators(source) == ("add", "cumsum", "setitem", "sin")


@given(st.text(max_size=60))
def test_no_text_crashes_it(text: str) -> None:
    called_operators(text)
