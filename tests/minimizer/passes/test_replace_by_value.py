"""Expressions give way to their traced values, and loops to one of their iterations."""

from __future__ import annotations

import ast

from pass_runner import after

from torchbisect.core.python_text import parse_python
from torchbisect.core.trace import ExpressionValue, Iteration, Trace
from torchbisect.core.verdict import Answer, Verdict
from torchbisect.minimizer.budget import Budget
from torchbisect.minimizer.candidate_filter import CandidateFilter
from torchbisect.minimizer.interestingness import InterestingnessTest
from torchbisect.minimizer.minimize import SCHEDULE
from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import tidy


def _trace(program: str, values: dict[str, str], *iterations: Iteration) -> Trace:
    """Return the trace of a program in which these expressions have these values."""
    nodes = [node for node in ast.walk(ast.parse(program)) if isinstance(node, ast.expr)]
    found = tuple(
        ExpressionValue(
            node.lineno,
            node.col_offset,
            node.end_lineno or 0,
            node.end_col_offset or 0,
            values[ast.unparse(node)],
            False,
        )
        for node in nodes
        if ast.unparse(node) in values
    )
    return Trace((), (), expressions=found, iterations=iterations)


def test_an_expression_gives_way_to_its_value_with_what_it_needed() -> None:
    program = (
        "import torch, loader\nbatch = loader.load(3)\ntorch.keep(batch['image'].clamp(0), loader.scale(batch) + 1)"
    )
    trace = _trace(program, {"batch['image'].clamp(0)": "torch.ones(2)", "loader.scale(batch) + 1": "4.0"})
    text = after("replace_by_value.expressions", program, "keep", trace=trace)
    assert text == "import torch\ntorch.keep(torch.ones(2), 4.0)"


def test_the_right_side_of_a_change_in_place_is_replaced_too() -> None:
    program = "bag = {}\ntasks = make()\nbag |= next(iter(tasks.values()))(image, labels)\nkeep(bag)"
    trace = _trace(program, {"next(iter(tasks.values()))(image, labels)": "{'a': 1}"})
    assert "bag |= {'a': 1}" in after("replace_by_value.expressions", program, "keep", "bag |= ", trace=trace)


def test_a_tensor_made_in_a_function_is_its_parameter_where_that_will_do() -> None:
    program = "def f(self, x):\n    keep({'a': self.scale(x.exp(), self.head(x))})\nf(m, y)"
    trace = _trace(program, {"self.scale(x.exp(), self.head(x))": "torch.ones(2, 3)"})
    text = after("replace_by_value.expressions", program, "keep", "'a'", trace=trace)
    assert text == "def f(self, x):\n    keep({'a': x})\nf(m, y)"


def test_a_loop_is_the_iteration_that_ran_most_of_its_body() -> None:
    program = """
for name, part in model.named_modules():
    if pattern.match(name):
        hook = make(name)
        part.register(hook)
"""
    names = ("name", "part")
    iterations = (
        Iteration(2, "<module>", names, ("'a.act'", "model.a.act")),
        Iteration(2, "<module>", names, ("''", None)),
    )
    text = after("replace_by_value.iterations", program, "model.a.act.register", trace=_trace(program, {}, *iterations))
    assert text == "if pattern.match('a.act'):\n    hook = make('a.act')\n    model.a.act.register(hook)"


def test_another_iteration_is_tried_and_a_variable_that_is_bound_anew_is_assigned() -> None:
    program = "for step in range(9):\n    step = step + 1\n    keep(step)\nlast = 0"
    iterations = (Iteration(1, "<module>", ("step",), ("0",)), Iteration(1, "<module>", ("step",), ("8",)))
    text = after("replace_by_value.iterations", program, "keep", "8", trace=_trace(program, {}, *iterations))
    assert text.startswith("step = 8\nstep = step + 1")


def test_what_a_loop_goes_over_is_still_made_where_that_is_needed() -> None:
    program = """
for guess, truth in zip(runner(x).argmax(1), labels):
    hits[bool(guess == truth)] += 1
keep(hits)
"""
    traced = Iteration(2, "<module>", ("guess", "truth"), ("3", "4"), number=0, count=8)
    text = after("replace_by_value.iterations", program, "runner(x)", "keep", trace=_trace(program, {}, traced))
    assert text.startswith("zip(runner(x).argmax(1), labels)\n")
    assert "for " not in text


def test_a_module_that_the_value_names_is_imported() -> None:
    program = "import loader\nqueue = loader.load(loader.path(1, 2, 3), loader.size)\nkeep(loader.fill(queue, 1, 2))"
    trace = _trace(program, {"loader.fill(queue, 1, 2)": "collections.deque([1])"})
    text = after("replace_by_value.expressions", program, "keep", "deque", trace=trace)
    assert text == "import collections\nkeep(collections.deque([1]))"


def test_a_loop_of_which_two_iterations_are_needed_is_written_out() -> None:
    program = """
def f(blocks, levels, h, found):
    for block, level in zip(blocks, levels):
        h = block(h) * 2
        found.append(level)
    keep(found)
f(a, b, c, d)
"""
    names = ("block", "level")
    traced = [Iteration(3, "f", names, (f"blocks[{n}]", "7"), number=n, count=2) for n in (1, 0)]
    trace = _trace(program, {}, *traced)

    def ask(text: str) -> Verdict:
        return Verdict(Answer.SAME if text.count("append(7)") == 2 or "append(level)" in text else Answer.NONE)

    tree = tidy(parse_python(program))
    test = InterestingnessTest(ask, Budget(), lambda progress: None, filter=CandidateFilter.of(tree))
    search = ReductionSearch(tree, test, trace=trace)
    SCHEDULE.passes["replace_by_value.iterations"](search)
    assert "for " not in search.text
    assert search.text.count("found.append(7)") == 2


def test_what_a_value_names_is_looked_up_no_more_so_its_entry_in_the_table_goes_too() -> None:
    program = """
class Registry:
    def __init__(self):
        self.rules = {}
    def register(self, name):
        def note(rule):
            self.rules[name] = rule
            return rule
        return note
registry = Registry()
@registry.register('clip')
def clip(limit):
    return keep(limit)
chosen = [registry.rules[name](3) for name in names]
keep(chosen)
"""
    trace = _trace(program, {"[registry.rules[name](3) for name in names]": "[clip(3), clip(limit=4)]"})
    text = after("replace_by_value.expressions", program, "clip", "[", trace=trace)
    assert "def register" not in text
    assert text.endswith("def clip(limit):\n    return keep(limit)\nchosen = [clip(3), clip(limit=4)]\nkeep(chosen)")
