"""Tensors that are written out lose the slices that the mismatch does not need, all of one size together."""

from __future__ import annotations

import ast

from hypothesis import given
from hypothesis import strategies as st
from pass_runner import after

from torchbisect.core.python_text import parse_python
from torchbisect.core.verdict import Answer, Verdict
from torchbisect.minimizer.budget import Budget
from torchbisect.minimizer.candidate_filter import CandidateFilter
from torchbisect.minimizer.interestingness import InterestingnessTest
from torchbisect.minimizer.minimize import SCHEDULE
from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import tidy


def test_rows_and_columns_go_from_all_tensors_of_one_shape() -> None:
    program = """
import torch
def f(x, y, mask):
    return x - y * mask
torch.compile(f)(
    torch.tensor([[1, 2, 3], [4, 5, 77]]), torch.tensor([[6, 7, 8], [9, 10, -88]]), torch.tensor([True, False, True]))
"""
    text = after("shrink_literals", program, "77", "88", "compile")
    assert text.endswith("torch.compile(f)(torch.tensor([[77]]), torch.tensor([[-88]]), torch.tensor([True]))")


def test_a_tensor_that_is_made_by_its_shape_shrinks_with_them() -> None:
    program = "import torch\ntorch.compile(f)(torch.tensor([1, 2, 3, 4, 5, 6]), torch.ones(5, 6))"

    def ask(text: str) -> Verdict:
        lengths = {text.count(",", text.index("tensor(["), text.index("])")) + 1, int(text[text.index("ones(5, ") + 8])}
        return Verdict(Answer.SAME if "compile" in text and len(lengths) == 1 else Answer.NONE)

    tree = tidy(parse_python(program))
    search = ReductionSearch(
        tree, InterestingnessTest(ask, Budget(), lambda progress: None, filter=CandidateFilter.of(tree))
    )
    SCHEDULE.passes["shrink_literals"](search)
    assert search.text == "import torch\ntorch.compile(f)(torch.tensor([1]), torch.ones(5, 1))"


@given(st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=1, max_size=9), st.data())
def test_what_is_needed_stays_in_place(rows: list[list[int]], data: st.DataObject) -> None:
    row, column = data.draw(st.integers(0, len(rows) - 1)), data.draw(st.integers(0, 2))
    rows = [list(items) for items in rows]
    rows[row][column] = 12345
    text = after("shrink_literals", f"import torch\ntorch.compile(f)(torch.tensor({rows}))", "12345", "compile")
    assert text == "import torch\ntorch.compile(f)(torch.tensor([[12345]]))"
    ast.parse(text)


def test_lists_that_are_no_tensors_stay() -> None:
    program = "import torch\ntorch.compile(f)([[1, 2], [3, 4]], torch.tensor([[1, 2], [3]]), torch.tensor([]))"
    assert after("shrink_literals", program, "compile") == program
