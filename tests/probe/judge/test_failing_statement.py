"""What a failing statement of a script asks about."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchbisect.probe.judge.failing_statement import assertions_that_say, bound_names, statement_at, statement_in_text


@pytest.mark.parametrize(
    ("source", "asks"),
    [
        ("assert y.requires_grad", ("requires_grad",)),
        ("assert torch.allclose(a, b)", ("allclose",)),
        ("assert a.grad is not None and b.shape == (1,)", ("grad", "shape")),
        ("flag = y.requires_grad\nassert flag", ("requires_grad",)),
        ("one = y.grad\ntwo = one\nassert two is None", ("grad",)),
        ("def check(x):\n    return x.dtype\nassert check(y)", ()),
        ("assert flag", ()),
    ],
)
def test_what_an_assertion_asks(source: str, asks: tuple[str, ...]) -> None:
    question = statement_at(source, source.count("\n") + 1)
    assert question is not None
    assert (question.kind, question.asks) == ("assert", asks)


def test_a_raise_asks_what_its_condition_asks() -> None:
    source = "def f(a, b):\n    if a.dtype != b.dtype:\n        raise ValueError('no')\n"
    assert statement_at(source, 3).asks == ("dtype",)
    assert statement_at(source, 2) is None


def test_an_exit_is_a_statement_too() -> None:
    question = statement_at("import sys\nif not ok.all().isnan():\n    sys.exit(1)\n", 3)
    assert (question.kind, question.asks) == ("exit", ("isnan",))


def test_a_statement_over_several_lines_is_found_on_each() -> None:
    source = "x = 1\nassert (\n    y.requires_grad\n), 'gone'\n"
    assert {statement_at(source, line).says for line in (2, 3, 4)} == {"gone"}


def test_assertions_are_found_by_what_they_say() -> None:
    source = "assert a.grad, 'one'\nassert b.shape\nassert c.dtype, 'two'\n"
    assert [question.asks for question in assertions_that_say(source, "two")] == [("dtype",)]
    assert [question.asks for question in assertions_that_say(source, "assertion error")] == [("shape",)]
    assert assertions_that_say(source, "three") == ()


def test_a_scripts_names_are_what_it_binds() -> None:
    source = "import torch\ndef f(x):\n    self.weight = y = x\nclass A: pass\n"
    assert bound_names(source) == {"f", "x", "y", "A", "weight"}


@given(st.text(max_size=60), st.integers(-3, 99))
def test_any_text_is_read_without_a_fuss(source: str, line: int) -> None:
    statement_at(source, line)
    statement_in_text(source)
    bound_names(source)
    assertions_that_say(source, source)


_NAMES = st.from_regex(r"[a-z]{1,6}_", fullmatch=True)


@given(_NAMES, _NAMES, st.integers(0, 20))
def test_names_and_lines_do_not_count(first: str, second: str, lines: int) -> None:
    text = "def {0}({0}x):\n    {0}flag = {0}x.requires_grad\n    assert {0}flag\n"
    left, right = text.format(first), "\n" * lines + text.format(second)
    assert statement_at(left, 3).asks == statement_at(right, 3 + lines).asks == ("requires_grad",)
