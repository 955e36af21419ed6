"""The search tries several edits at once after accepted ones."""

from __future__ import annotations

import ast

from pass_runner import having

from torchbisect.core.python_text import parse_python
from torchbisect.core.verdict import Answer, Verdict
from torchbisect.minimizer.budget import Budget
from torchbisect.minimizer.candidate_filter import CandidateFilter
from torchbisect.minimizer.interestingness import InterestingnessTest
from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit, apply, tidy


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
    test.begin_round(parse_python(program))
    search = ReductionSearch(tidy(parse_python(program)), test)
    wins = search.scan(lambda tree: (Edit.of(node, ast.Constant(1)) for node in ast.walk(tree) if _is_float(node)))
    assert wins == 32
    assert len(asked) < 10


def test_an_edit_that_failed_is_not_asked_about_again_in_its_round() -> None:
    search, asked = _search("keep(1.0)\nkeep(2.0)", "keep(1.0)\n")
    edits = [Edit.of(node, ast.Constant(0)) for node in ast.walk(search.tree) if _is_float(node)]
    assert search.attempt_first_once(edits, lambda edit: apply(search.tree, [edit])) == 1
    assert len(asked) == 2
    first = next(node for node in ast.walk(search.tree) if _is_float(node))
    again = Edit.of(first, ast.Constant(0))
    assert search.attempt_first_once([again], lambda edit: apply(search.tree, [edit])) is None
    assert not search.attempt_once(again, apply(search.tree, [again]))
    assert len(asked) == 2
    search.begin_round(search.text, None)
    assert not search.attempt_once(again, apply(search.tree, [Edit.of(_first_float(search.tree), ast.Constant(3))]))
    assert len(asked) == 3


def test_edits_go_one_by_one_where_the_pass_mostly_failed() -> None:
    lines = [f"keep{number}()" for number in range(8)]
    search, asked = _search("\n".join(lines), *lines[1:])
    search.interestingness.current.asked = 9
    assert search.delta_debug([Edit.remove(item) for item in search.tree.body]) == 1
    assert len(asked) == 8


def test_several_edits_go_together_again_after_successes() -> None:
    lines = [f"drop{number}()" for number in range(30)]
    search, asked = _search("keep()\n" + "\n".join(lines), "keep()")
    search.interestingness.current.asked = 9
    assert search.delta_debug([Edit.remove(item) for item in search.tree.body]) == 30
    assert len(asked) < 12


def test_a_candidate_that_was_refused_under_other_names_is_not_asked_about() -> None:
    search, asked = _search("first = 1\nuse(first, 2)", "use(first, 2)")
    assert not search.attempt(parse_python("first = 1\nuse(first)"))
    assert not search.attempt(parse_python("x = 1\nuse(x)"))
    assert len(asked) == 1


def _search(program: str, *words: str) -> tuple[ReductionSearch, list[str]]:
    """Return a search whose oracle looks for these words, and the texts that it is asked about."""
    asked: list[str] = []

    def ask(text: str) -> Verdict:
        asked.append(text)
        return having(*words)(text)

    test = InterestingnessTest(ask, Budget(), lambda progress: None, filter=CandidateFilter.of(parse_python(program)))
    return ReductionSearch(tidy(parse_python(program)), test), asked


def _first_float(tree: ast.AST) -> ast.AST:
    return next(node for node in ast.walk(tree) if _is_float(node))


def _is_float(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, float)
