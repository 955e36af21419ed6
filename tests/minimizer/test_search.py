"""The search tries several edits at once after accepted ones."""

from __future__ import annotations

import ast

from torchbisect.core.verdict import Answer, Verdict
from torchbisect.minimizer.budget import Budget
from torchbisect.minimizer.interestingness import InterestingnessTest
from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit, tidy
from torchbisect.minimizer.syntax.tree import parse


def test_several_options_are_tried_at_once_after_accepted_ones() -> None:
    program = (
        "\n".join(f"a{number} = {number}.0" for number in range(2, 34))
        + "\nkeep("
        + ", ".join(f"a{number}" for number in range(2, 34))
        + ")"
    )
    asked = []

    def ask(text: str) -> Verdict:
        asked.append(text)
        return Verdict(Answer.SAME)

    test = InterestingnessTest(ask, Budget(), lambda progress: None)
    test.begin_round(parse(program))
    search = ReductionSearch(tidy(parse(program)), test)
    wins = search.scan(lambda tree: (Edit.of(node, ast.Constant(1)) for node in ast.walk(tree) if _is_float(node)))
    assert wins == 32
    assert len(asked) < 10


def _is_float(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, float)
