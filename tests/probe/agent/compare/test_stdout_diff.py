"""Printed lines are compared with a tolerance for numbers and without addresses."""

from __future__ import annotations

import time

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
        ("1e400", "2e400", True),
        ("1e-400", "2e-400", False),
        (f"1e{'9' * 5000}", f"1e-{'9' * 5000}", True),
        ("1.5.2", "1.5.3", True),
        ("1.50...", "1.51...", False),
        ("x  1.0", "x -1.0", True),
        ("tensor([1., 2.])", "tensor([1., 3.])", True),
        ("1e-3", "1.0e-3", False),
    ],
)
def test_lines_differ_only_beyond_addresses_and_noise(left: str, right: str, differ: bool) -> None:
    assert stdout_diff.lines_differ(left, right) is differ


LONG = "tensor([[0.1, 0.2, 0.3]],\n       grad_fn=<CompiledFunctionBackward>)\nend"


@pytest.mark.parametrize(
    ("eager", "compiled", "lines"),
    [
        ("tensor([1.], grad_fn=<AddBackward0>)", "tensor([1.], grad_fn=<CompiledFunctionBackward>)", 0),
        ("<AddBackward0 object at 0x7f01>", "<torch.autograd.function.CompiledFunctionBackward object at 0x7f02>", 0),
        ("tensor([[0.1, 0.2, 0.3]], grad_fn=<MulBackward0>)\nend", LONG, 0),
        ("tensor([1.], grad_fn=<AddBackward0>)", "tensor([1.])", 1),
        ("tensor([1.], grad_fn=<AddBackward0>)", "tensor([2.], grad_fn=<CompiledFunctionBackward>)", 1),
        ("tensor([[0.1, 0.2, 0.9]], grad_fn=<MulBackward0>)\nend", LONG, 1),
        ("Backward pass 1", "Backward pass 2", 1),
    ],
)
def test_names_of_autograds_nodes_are_no_difference(eager: str, compiled: str, lines: int) -> None:
    assert len(stdout_diff.different_lines(eager, compiled, None)) == lines


@pytest.mark.parametrize("unit", ["1", "1.", "1e", "+1", ".1", "1a", "0x1", "1_", " "])
def test_a_long_line_is_compared_quickly(unit: str) -> None:
    line = unit * (200_000 // len(unit))
    started = time.process_time()
    stdout_diff.lines_differ(f"{line}a", f"{line}b")
    assert time.process_time() - started < 2.0
