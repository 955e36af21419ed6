"""The flow of data is cut before and after the culprit."""

from __future__ import annotations

from pass_runner import after

from torchbisect.core.trace import Trace, Value


def test_a_traced_value_replaces_the_computations_before_it() -> None:
    program = "import torch\nimport loader\nbatch = loader.load()\nh = encode(batch)\nkeep(h)"
    value = Value(line=4, function="<module>", name="h", text="torch.randn(2, 3)", exact=False)
    text = after("cut_data_flow.upstream", program, "keep", trace=Trace((), (value,)))
    assert text == "import torch\nh = torch.randn(2, 3)\nkeep(h)"


def test_the_numbers_of_an_unpacked_shape_are_written_in_place() -> None:
    program = "def f(x):\n    rows, width = x.shape\n    keep(x.view(rows, width), rows)\nf(y)"
    values = (Value(2, "f", "rows", "2", True), Value(2, "f", "width", "3", True))
    text = after("cut_data_flow.upstream", program, "keep", trace=Trace((), values))
    assert text == "def f(x):\n    keep(x.view(2, 3), 2)\nf(y)"


def test_a_function_ends_at_the_statement_that_shows_the_mismatch() -> None:
    program = """
def f(x):
    a = x + 1
    b = culprit(a)
    change(b, a)
    c = b * 2
    d = c @ c
    return d, c
keep(f(y))
"""
    text = after("cut_data_flow.downstream", program, "keep", "change")
    assert text == "def f(x):\n    a = x + 1\n    b = culprit(a)\n    change(b, a)\n    return (b, b)\nkeep(f(y))"


def test_no_random_numbers_are_drawn_inside_a_function() -> None:
    program = "import torch\ndef f(x):\n    h = g(g(x, 1), g(3, 4))\n    keep(h)\nh = g(g(1), g(2))\nf(h)"
    values = (Value(3, "f", "h", "torch.randn(2, 3)", False), Value(5, "<module>", "h", "torch.randn(2)", False))
    text = after("cut_data_flow.upstream", program, "keep", trace=Trace((), values))
    assert "    h = torch.ones(2, 3)\n" in text
    assert "\nh = torch.randn(2)" in text


def test_attributes_give_way_to_their_values_with_the_classes_that_held_them() -> None:
    program = """
import operator
class Step:
    def __init__(self, function, names):
        self.function, self.names = function, names
class Plan:
    steps = [Step(operator.isub, ('a',))]
plan = Plan()
def f(x, step):
    if plan.width > 3:
        keep(x, step.function)
    return x * plan.width
f(y, plan.steps[0])
"""
    reads = (
        Value(12, "f", "plan.width", "4", True),
        Value(11, "f", "step.function", "operator.isub", True),
        Value(13, "<module>", "plan.steps", "[1]", True),
    )
    text = after("cut_data_flow.attributes", program, "keep", "operator.isub", trace=Trace((), (), reads))
    assert "keep(x, operator.isub)" in text
    assert "f(y, [1][0])" in text
    assert "class Step" not in text
    # The value is that of the condition's statement, which ends on the last line of its body.
    assert "if plan.width > 3" in text


def test_an_object_goes_with_its_class_when_its_attribute_is_written_out() -> None:
    program = (
        "class Plan:\n    def __init__(self, steps):\n        self.steps = steps\nplan = Plan([1, 2])\nkeep(plan.steps)"
    )
    reads = (Value(5, "<module>", "plan.steps", "[1, 2]", True),)
    text = after("cut_data_flow.attributes", program, "keep", trace=Trace((), (), reads))
    assert text == "keep([1, 2])"


def test_a_global_goes_with_the_statements_that_fill_it() -> None:
    program = "b = dict(x=[])\nb['x'].append(1)\nb['y'] = 2\ndef f():\n    for a in b:\n        keep(a)\nf()"
    reads = (Value(6, "f", "b", "{'x': [1], 'y': 2}", True),)
    text = after("cut_data_flow.attributes", program, "keep", trace=Trace((), (), reads))
    assert text == "def f():\n    for a in {'x': [1], 'y': 2}:\n        keep(a)\nf()"
