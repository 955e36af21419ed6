"""Whole reductions."""

from __future__ import annotations

import ast

from pass_runner import having

from torchbisect.core.trace import Trace
from torchbisect.core.verdict import Answer, Verdict
from torchbisect.minimizer.minimize import minimize
from torchbisect.minimizer.syntax.tree import text_of


def test_a_script_may_read_its_own_docstring() -> None:
    def ask(text: str) -> Verdict:
        shown: list[str] = []
        exec(text, {"__doc__": ast.get_docstring(ast.parse(text)), "keep": shown.append, "torch": None})
        return Verdict(Answer.SAME if shown == ["What it does."] else Answer.NONE)

    source = '"""What it does.\n\nAnd how."""\nwaste = 1\nkeep(__doc__.splitlines()[0])'
    left = minimize(source, ask).source
    assert "waste" not in left
    assert "What it does." in left


def test_a_script_whose_text_matters_is_left_alone() -> None:
    source = "# marker\nx = 1\n"
    result = minimize(source, having("marker"))
    assert result.source == source
    assert result.asked == 1


def test_only_candidates_are_traced() -> None:
    traced: list[str] = []

    def trace(text: str) -> Trace | None:
        traced.append(text)
        return Trace((), ())

    minimize("a = 1\nb = 2\nkeep(a)\n", having("keep"), trace=trace)
    assert traced
    for text in traced:
        assert "keep" in text
        assert text.endswith("\n")
        assert text_of(ast.parse(text))


def test_a_candidate_that_is_not_accepted_is_never_asked_about() -> None:
    asked: list[str] = []

    def ask(text: str) -> Verdict:
        asked.append(text)
        return Verdict(Answer.SAME if "keep" in text else Answer.NONE)

    left = minimize("a = 1\nb = 2\nkeep(a)\n", ask, accepts=lambda text: "b = 2" in text).source
    assert "b = 2" in left
    assert "a = 1" not in left
    assert all("b = 2" in text for text in asked)
