"""The subjects of a failing statement of a script."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchbisect.probe.judge.failing_statement import (
    assertions_with_message,
    bound_names,
    statement_at,
    statement_in_text,
)


@pytest.mark.parametrize(
    ("source", "subjects"),
    [
        ("assert y.requires_grad", ("requires_grad",)),
        ("assert torch.allclose(a, b)", ("allclose",)),
        ("assert a.grad is not None and b.shape == (1,)", ("grad", "shape")),
        ("flag = y.requires_grad\nassert flag", ("requires_grad",)),
        ("one = y.grad\ntwo = one\nassert two is None", ("grad",)),
        ("def check(x):\n    return x.dtype\nassert check(y)", ()),
        ("assert flag", ()),
        ("torch.testing.assert_close(\n    y.grad,\n    expected, equal_nan=True)", ("grad",)),
        ("self.assertEqual(y.dtype, x.dtype)", ("dtype",)),
    ],
)
def test_subjects_of_an_assertion(source: str, subjects: tuple[str, ...]) -> None:
    statement = statement_at(source, source.count("\n") + 1)
    assert statement is not None
    assert (statement.kind, statement.subjects) == ("assert", subjects)


def test_subjects_of_a_raise_are_those_of_its_condition() -> None:
    source = "def f(a, b):\n    if a.dtype != b.dtype:\n        raise ValueError('no')\n"
    assert statement_at(source, 3).subjects == ("dtype",)
    assert statement_at(source, 2) is None


def test_an_exit_is_a_statement_too() -> None:
    statement = statement_at("import sys\nif not ok.all().isnan():\n    sys.exit(1)\n", 3)
    assert (statement.kind, statement.subjects) == ("exit", ("isnan",))


def test_a_statement_over_several_lines_is_found_on_each() -> None:
    source = "x = 1\nassert (\n    y.requires_grad\n), 'gone'\n"
    assert {statement_at(source, line).message for line in (2, 3, 4)} == {"gone"}


def test_assertions_are_found_by_their_message() -> None:
    source = "assert a.grad, 'one'\nassert b.shape\nassert c.dtype, 'two'\n"
    assert [statement.subjects for statement in assertions_with_message(source, "two")] == [("dtype",)]
    assert [statement.subjects for statement in assertions_with_message(source, "assertion error")] == [("shape",)]
    assert assertions_with_message(source, "three") == ()


def test_bound_names_of_a_script() -> None:
    source = "import torch\ndef f(x):\n    self.weight = y = x\nclass A: pass\n"
    assert bound_names(source) == {"f", "x", "y", "A", "weight"}


@given(st.text(max_size=60), st.integers(-3, 99))
def test_any_text_is_accepted(source: str, line: int) -> None:
    statement_at(source, line)
    statement_in_text(source)
    bound_names(source)
    assertions_with_message(source, source)


_NAMES = st.from_regex(r"[a-z]{1,6}_", fullmatch=True)


@given(_NAMES, _NAMES, st.integers(0, 20))
def test_subjects_ignore_names_and_lines(first: str, second: str, lines: int) -> None:
    text = "def {0}({0}x):\n    {0}flag = {0}x.requires_grad\n    assert {0}flag\n"
    left, right = text.format(first), "\n" * lines + text.format(second)
    assert statement_at(left, 3).subjects == statement_at(right, 3 + lines).subjects == ("requires_grad",)
