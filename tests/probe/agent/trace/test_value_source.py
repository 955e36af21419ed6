"""Expressions written for values give the same values again."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import pathlib
import types
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from torchbisect.probe.agent.trace.value_source import ExpressionWriter  # noqa: E402


class Color(enum.Enum):
    RED = 1


@dataclasses.dataclass
class Config:
    width: int = 4
    names: list[str] = dataclasses.field(default_factory=list)


NAMESPACE: dict[str, Any] = {"torch": torch, "Color": Color, "Config": Config, "collections": collections}

plain_values = st.recursive(
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
        st.builds(collections.OrderedDict, st.dictionaries(st.text(max_size=3), inner, max_size=2)),
        st.builds(collections.Counter, st.dictionaries(st.text(max_size=3), st.integers(0, 9), max_size=2)),
        st.builds(collections.deque, st.lists(inner, max_size=2), st.integers(2, 4)),
    ),
    max_leaves=6,
)


@given(plain_values)
def test_expressions_give_equal_plain_values(value: Any) -> None:
    expression = ExpressionWriter(NAMESPACE).write(value)
    if expression is not None:
        assert expression.exact
        assert eval(expression.text, dict(NAMESPACE)) == value


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
def test_expressions_give_tensors_of_equal_form_and_equal_values_if_exact(tensor: Any) -> None:
    expression = ExpressionWriter(NAMESPACE).write(tensor)
    if expression is None:
        return
    again = eval(expression.text, dict(NAMESPACE))
    assert (again.shape, again.dtype, again.requires_grad) == (tensor.shape, tensor.dtype, tensor.requires_grad), (
        expression
    )
    if tensor.numel():
        assert again.is_contiguous() == tensor.is_contiguous(), expression
    if expression.exact:
        assert torch.equal(again.detach(), tensor.detach()), expression


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (torch.ones(1, 1), "torch.ones(1, 1)"),
        (torch.zeros(1), "torch.zeros(1)"),
        (torch.tensor(1.0), "torch.tensor(1.0)"),
        (torch.full((2,), -0.0), "torch.full((2,), -0.0)"),
        (torch.tensor([1]), "torch.tensor([1])"),
        (torch.eye(2), "torch.eye(2)"),
    ],
)
def test_a_plain_tensor_is_written_in_its_plain_form(value: Any, text: str) -> None:
    found = ExpressionWriter(NAMESPACE).write(value)
    assert found is not None
    assert found == (text, True)


class Header(NamedTuple):
    name: str
    cell: Any = None


Header.__module__ = "__main__"  # as a class of the script


def _names() -> dict[str, Any]:
    modules = (fractions, decimal, datetime, pathlib, types)
    return {**NAMESPACE, "Header": Header, **{module.__name__: module for module in modules}}


@pytest.mark.parametrize(
    "value",
    [
        fractions.Fraction(1, 3),
        decimal.Decimal("0.10"),
        datetime.timedelta(days=2),
        pathlib.PurePosixPath("a/b"),
        types.SimpleNamespace(rate=fractions.Fraction(1, 2)),
        Header("a", fractions.Fraction(1, 2)),
    ],
)
def test_values_of_libraries_are_made_as_pickle_makes_them(value: Any) -> None:
    found = ExpressionWriter(_names()).write(value)
    assert found is not None
    assert found.exact
    assert eval(found.text, _names()) == value


def test_a_named_tuple_with_a_part_that_cannot_be_written_is_not_written_without_its_parts() -> None:
    assert ExpressionWriter(_names()).write(Header("a", lambda: None)) is None


@given(
    st.sampled_from([torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.int64]),
    st.lists(st.integers(1, 5), max_size=3),
    st.integers(0, 2**16),
)
@example(torch.float64, [2, 2, 4], 771)  # one is 43.0999877: nearly 43.1
def test_by_value_the_numbers_are_the_same(dtype: torch.dtype, shape: list[int], seed: int) -> None:
    numbers = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 50
    value = numbers.to(dtype)
    written = ExpressionWriter(NAMESPACE).write_by_value(value)
    assert written is not None
    again = eval(written.text, dict(NAMESPACE))
    assert again.dtype == dtype
    assert torch.equal(again, value)


def test_of_many_numbers_one_that_is_not_finite_stands_for_all() -> None:
    value = torch.randn(40, 40)
    writer = ExpressionWriter(NAMESPACE)
    plain, by_value = writer.write(value), writer.write_by_value(value)
    assert plain == by_value
    value[3, 4] = float("nan")
    by_value = writer.write_by_value(value)
    assert by_value is not None
    assert by_value.text == 'torch.full((40, 40), float("nan"))'
