"""Printed lines are compared with a tolerance for numbers and without addresses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

from torchbisect.probe.agent.compare import stdout_diff  # noqa: E402


@given(st.text(max_size=40))
def test_a_line_equals_itself(line: str) -> None:
    assert not stdout_diff.lines_differ(line, line)


@pytest.mark.parametrize(
    ("left", "right", "differ"),
    [
        ("loss 0.12345", "loss 0.12346", False),
        ("loss 0.12345", "loss 0.22345", True),
        ("loss 0.12", "loss 0.13", False),
        ("step 3", "step 4", True),
        ("<object at 0x7f0012ab>", "<object at 0x7f99ffff>", False),
        ("ok", "not ok", True),
        ("x  1.0", "x -1.0", True),
        ("tensor([1., 2.])", "tensor([1., 3.])", True),
        ("1e-3", "1.0e-3", False),
    ],
)
def test_lines_differ_only_beyond_addresses_and_noise(left: str, right: str, differ: bool) -> None:
    assert stdout_diff.lines_differ(left, right) is differ
