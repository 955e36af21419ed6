"""The rule for numbers, the comparison of printed lines, and expressions that rebuild values."""

from __future__ import annotations

import collections
import dataclasses
import enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from torchbisect.probe.agent.compare import stdout_diff, tolerance  # noqa: E402
from torchbisect.probe.agent.trace.value_source import Rebuilder  # noqa: E402

lists = st.lists(st.floats(-1e3, 1e3, width=32), min_size=1, max_size=30)


@given(lists, st.floats(-4e-5, 4e-5))
def test_what_is_close_never_differs(values: list[float], relative: float) -> None:
    eager = torch.tensor(values)
    assert tolerance.floats_differ(eager, eager * (1 + relative), None, "torch.float32") is None


@given(lists, st.integers(0, 29), st.floats(0.5, 100))
def test_one_wrong_element_is_found(values: list[float], at: int, off: float) -> None:
    eager = torch.tensor(values, dtype=torch.float64)
    compiled = eager.clone()
    compiled[at % len(values)] += off * (1 + eager.abs().max())
    found = tolerance.floats_differ(eager, compiled, eager, "torch.float32")
    assert found is not None
    assert (found["position"], found["count"]) == (at % len(values), 1)


@given(lists)
def test_errors_no_larger_than_eagers_own_are_forgiven(values: list[float]) -> None:
    exact = torch.tensor(values, dtype=torch.float64)
    eager, compiled = exact + 0.5, exact - 0.5
    assert tolerance.floats_differ(eager, compiled, exact, "torch.float16") is None
    assert tolerance.floats_differ(eager, compiled, None, "torch.float16") is not None


def test_patterns_of_nan_and_infinity_count() -> None:
    nan, inf = float("nan"), float("inf")
    same = torch.tensor([nan, inf, -inf, 1.0])
    assert tolerance.floats_differ(same, same.clone(), None, "torch.float32") is None
    for other in ([0.0, inf, -inf, 1.0], [nan, -inf, -inf, 1.0], [nan, inf, -inf, nan]):
        assert tolerance.floats_differ(same, torch.tensor(other), same, "torch.float32") is not None


def test_a_small_gradient_that_became_zero_is_found() -> None:
    eager = torch.full((5,), 3e-4)
    assert tolerance.floats_differ(eager, eager * 0, eager.double(), "torch.float32") is not None


@given(st.text(max_size=40))
def test_a_line_agrees_with_itself(line: str) -> None:
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
def test_lines_are_compared_with_sense(left: str, right: str, differ: bool) -> None:
    assert stdout_diff.lines_differ(left, right) is differ


class Color(enum.Enum):
    RED = 1


@dataclasses.dataclass
class Config:
    width: int = 4
    names: list[str] = dataclasses.field(default_factory=list)


SPACE: dict[str, Any] = {"torch": torch, "Color": Color, "Config": Config, "collections": collections}

plain = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-99, 99),
        st.floats(allow_nan=False),
        st.text(max_size=5),
        st.just(Color.RED),
        st.builds(Config, st.integers(0, 9), st.lists(st.text(max_size=3), max_size=2)),
        st.sampled_from([torch.float16, torch.sin, torch.nn.ReLU, torch.nn.functional.gelu, torch.Size([2, 3])]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(st.text(max_size=3), inner, max_size=2),
        st.builds(collections.deque, st.lists(inner, max_size=2), st.integers(2, 4)),
    ),
    max_leaves=6,
)


@given(plain)
def test_plain_values_are_rebuilt(value: Any) -> None:
    text = Rebuilder(SPACE).text(value)
    if text is not None:
        assert text.exact
        assert eval(text.text, dict(SPACE)) == value


@st.composite
def tensors(draw: st.DrawFn) -> Any:
    shape = draw(st.lists(st.integers(0, 4), max_size=4))
    dtype = draw(st.sampled_from([torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool, torch.int32]))
    made = draw(st.sampled_from([torch.zeros, torch.ones, torch.randn, torch.rand]))(shape).mul(3).to(dtype)
    if made.dim() > 1 and draw(st.booleans()):
        made = made.permute(draw(st.permutations(range(made.dim()))))
    if made.dim() and made.shape[0] > 2 and draw(st.booleans()):
        made = made[::2]
    if made.is_floating_point() and draw(st.booleans()):
        made = made.detach().requires_grad_()
    return made


@given(tensors())
def test_tensors_are_rebuilt_in_form_and_exactly_where_it_says_so(tensor: Any) -> None:
    text = Rebuilder(SPACE).text(tensor)
    if text is None:
        return
    again = eval(text.text, dict(SPACE))
    assert (again.shape, again.dtype, again.requires_grad) == (tensor.shape, tensor.dtype, tensor.requires_grad), text
    if tensor.numel():
        assert again.is_contiguous() == tensor.is_contiguous(), text
    if text.exact:
        assert torch.equal(again.detach(), tensor.detach()), text
