"""One call of the script is left, on rebuilt inputs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pass_runner import after

from torchbisect.core.trace import Argument, Call, Trace, Value


def test_effects_on_the_objects_that_a_closure_reads_are_kept() -> None:
    program = """
import torch
class Watch:
    def __init__(self, model):
        self.model = model
    def detach(self):
        self.model.register_hook(print)
def train(size):
    model = torch.nn.Linear(size, 2)
    Watch(model).detach()
    unrelated(size)
    def step(x):
        return model(x).detach()
    fast = torch.compile(step)
    return fast(torch.ones(1, 3))
train(3)
"""
    arguments = (Argument("x", "torch.ones(1, 3)", True),)
    calls = (
        Call(0, None, "train", 8, (Argument("size", "3", True),), None, None, False, False, 1.0),
        Call(1, 0, "train.<locals>.step", 12, arguments, None, None, True, True, 1.0),
    )
    values = (Value(9, "train", "model", "torch.nn.Linear(3, 2)", False),)
    text = after("isolate_call", program, "register_hook", "compile", trace=Trace(calls, values))
    assert "Watch(model).detach()\n\ndef step(x):" in text
    assert "model = torch.nn.Linear(3, 2)" in text
    assert "unrelated" not in text
    assert "train" not in text


def test_one_call_on_rebuilt_inputs_is_left() -> None:
    program = """
import torch
torch.set_default_dtype(torch.float64)
def inner(a, b):
    return a @ b
def outer(x):
    return inner(x, x.T).relu()
def train(flag):
    torch._dynamo.config.capture_scalar_outputs = True
    return torch.compile(outer, backend="eager")(torch.randn(3, 3))
train(True)
"""
    tensor = Argument("x", "torch.randn(3, 3)", exact=False)
    calls = (
        Call(0, None, "train", 8, (Argument("flag", "True", exact=True),), None, None, False, False, 0.1),
        Call(1, 0, "outer", 6, (tensor,), None, None, True, True, 0.1),
        Call(2, 1, "inner", 4, (tensor, tensor), None, None, True, False, 0.1),
    )
    text = after("isolate_call", program, "@", "compile", trace=Trace(calls, ()))
    assert "torch.compile(inner)(torch.randn(3, 3), torch.randn(3, 3))" in text
    assert "outer" not in text
    assert "torch.set_default_dtype(torch.float64)" in text
    assert "torch._dynamo.config.capture_scalar_outputs = True" in text


def test_an_exception_of_the_call_is_caught() -> None:
    program = """
import torch
def check(x, alpha):
    return torch.celu_(x, alpha)
def trial(alpha):
    try:
        torch.compile(check)(torch.ones(2), alpha)
    except RuntimeError:
        return False
[trial(alpha) for alpha in (1.0, 0.0)]
"""

    def called(number: int, alpha: str, raised: str) -> Call:
        arguments = Argument("x", "torch.ones(2)", True), Argument("alpha", alpha, True)
        return Call(number, None, "check", 3, arguments, None, None, True, True, 0.1, raised)

    calls = called(0, "1.0", ""), called(1, "0.0", "RuntimeError")
    text = after("isolate_call", program, "except RuntimeError", "celu_", trace=Trace(calls, ()))
    assert text.endswith("try:\n    torch.compile(check)(torch.ones(2), 0.0)\nexcept RuntimeError:\n    pass")


def test_a_later_call_with_other_arguments_is_tried_where_the_first_shows_nothing() -> None:
    program = """
import torch
def pick(rows, at):
    return rows[at] + 1
for at in (0, 1, 1, 2):
    torch.compile(pick)(r, at)
"""

    def called(number: int, at: str) -> Call:
        arguments = Argument("rows", "[1, 2]", True), Argument("at", at, True)
        return Call(number, None, "pick", 2, arguments, None, None, True, True, 0.1)

    calls = tuple(called(number, at) for number, at in enumerate(("0", "1", "1", "2")))
    for at in ("1", "2"):
        text = after("isolate_call", program, f"[1, 2], {at})", trace=Trace(calls, ()))
        assert text.endswith(f"torch.compile(pick)([1, 2], {at})")


def test_a_closure_stays_a_closure_with_the_classes_that_it_uses() -> None:
    program = """
import torch
def make(size):
    log = []
    chosen = {1: size}[size]
    class Event:
        def write(self):
            log.append(chosen)
    def step(x):
        Event().write()
        return x * 2
    return step
for epoch in range(3):
    print(epoch, torch.compile(make(1))(torch.ones(2) * torch.arange(2) + 1).sum().item() + epoch)
"""
    tensor = (Argument("x", "torch.ones(2)", exact=True),)
    calls = (
        Call(0, None, "make", 3, (Argument("size", "1", exact=True),), None, None, False, False, 0.1),
        Call(1, None, "make.<locals>.step", 9, tensor, None, None, True, True, 0.1),
    )
    values = (Value(line=4, function="make", name="log", text="[]", exact=True),)
    text = after("isolate_call", program, "return step", "compile", trace=Trace(calls, values))
    assert "def make2():\n    size = 1\n    chosen = {1: size}[size]\n    log = []\n\n    class Event:" in text
    assert "torch.compile(make2())(torch.ones(2))" in text


def test_a_setting_that_reads_a_local_name_is_dropped() -> None:
    program = """
import torch
def run(state):
    torch.set_rng_state(state)
    torch.set_default_dtype(torch.float64)
    return torch.compile(f)(torch.ones(2))
def f(x):
    return x * 2
run(torch.get_rng_state())
"""
    tensor = (Argument("x", "torch.ones(2)", exact=True),)
    calls = (Call(0, None, "f", 7, tensor, None, None, True, True, 0.1),)
    text = after("isolate_call", program, "* 2", "compile", trace=Trace(calls, ()))
    assert "set_rng_state" not in text
    assert "set_default_dtype" in text


def test_a_function_without_tensor_operations_is_compiled_beside_one() -> None:
    """Without one there is no graph: a frame that only handles Python's objects is not compiled at all."""
    program = """
import torch, operator
def pick(names):
    kept = set(names)
    operator.isub(kept, {1})
    return sorted(kept)
def run(x, names):
    return [x + name for name in pick(names)]
torch.compile(run)(torch.ones(1), [1, 2])
"""
    names = Argument("names", "[1, 2]", exact=True)
    tensor = Argument("x", "torch.ones(1)", exact=True)
    calls = (
        Call(0, None, "run", 7, (tensor, names), None, None, True, True, 0.1),
        Call(1, 0, "pick", 3, (names,), None, None, True, False, 0.1),
    )
    text = after("isolate_call", program, "isub", "compile", trace=Trace(calls, ()))
    assert "def beside(x2, arg0):\n    return (pick(arg0), x2 + 1)" in text
    assert "torch.compile(beside)(torch.ones(1), [1, 2])" in text


def test_a_closure_is_taken_out_with_the_values_that_it_reads() -> None:
    program = """
import torch
def make(drop):
    dropped = set(drop)
    def helper(x):
        return x + len(dropped)
    def step(x):
        return helper(x) * 2
    return step
def main():
    torch.compile(make(["a"]))(torch.ones(2))
main()
"""
    tensor = (Argument("x", "torch.ones(2)", exact=True),)
    calls = (
        Call(0, None, "main", 10, (), None, None, False, False, 0.1),
        Call(1, 0, "make", 3, (Argument("drop", "['a']", exact=True),), None, None, False, False, 0.1),
        Call(2, 0, "make.<locals>.step", 7, tensor, None, None, True, True, 0.1),
    )
    values = (Value(line=4, function="make", name="dropped", text="{'a'}", exact=True),)
    text = after("isolate_call", program, "* 2", "compile", trace=Trace(calls, values))
    assert "dropped = {'a'}\n\ndef helper(x):\n    return x + len(dropped)\n\ndef step(x):" in text
    assert "torch.compile(step)(torch.ones(2))" in text
    assert "make" not in text


def test_a_call_that_cannot_be_written_is_passed_over() -> None:
    program = """
import torch
class Net(torch.nn.Module):
    def embed(self, x):
        return self.body(x)
    def forward(self, x):
        return self.embed(x) + 1
def refine(h):
    return h.relu()
torch.compile(Net())(torch.ones(2))
"""
    tensor = (Argument("x", "torch.ones(2)", exact=True),)
    calls = (
        Call(0, None, "Net.forward", 6, tensor, "Net", "Net()", True, True, 0.1),
        Call(1, 0, "Net.embed", 4, tensor, "Net", None, True, False, 0.1),
        Call(2, 1, "refine", 8, tensor, None, None, True, False, 0.1),
    )
    text = after("isolate_call", program, "relu", "compile", trace=Trace(calls, ()))
    assert text.endswith("torch.compile(refine)(torch.ones(2))")


def test_arguments_that_share_memory_share_it_in_the_isolated_call() -> None:
    program = """
import torch
def step(line, tap):
    line.add_(1)
    return tap[0]
def train(run):
    for line in (torch.zeros(4), torch.ones(4) * 2):
        for start in range(3):
            print(start, run(line, line[1:]))
train(torch.compile(step))
"""
    arguments = (Argument("line", "(shared0 := torch.zeros(4))", False), Argument("tap", "shared0[1:]", False))
    calls = (Call(0, None, "step", 3, arguments, None, None, True, True, 0.1),)
    text = after("isolate_call", program, "add_", "compile", trace=Trace(calls, ()))
    assert text.endswith("shared0 = torch.zeros(4)\ntorch.compile(step)(shared0, shared0[1:])")


def test_what_a_method_counts_for_the_rest_of_the_script_is_kept() -> None:
    program = """
import torch
class Net(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.seen = 0
        self.unread = 0
    def forward(self, x):
        self.seen += 1
        self.unread += 1
        return x.relu()
def train(net):
    torch.compile(net)(torch.randn(3))
    print(net.seen)
train(Net(3))
"""
    net = Argument("net", "Net(3)", exact=True)
    tensor = Argument("x", "torch.randn(3)", exact=False)
    calls = (
        Call(0, None, "train", 13, (net,), None, None, False, False, 0.1),
        Call(1, 0, "Net.forward", 9, (tensor,), "Net", "Net(3)", True, True, 0.1),
    )
    text = after("isolate_call", program, "self.seen += 1", "compile", trace=Trace(calls, ()))
    assert "train" not in text
    assert "unread" not in text


METHOD = """
import torch
class History:
    def __init__(self, config):
        self.rows, self.count = torch.zeros(4), 0
    def advance(self, by):
        self.rows[by:].copy_(self.rows[:-by])
    def put(self, row):
        self.count += 1
        self.rows[self.count] = row
    def both(self, by):
        self.advance(by)
        return self.rows
history = History(open("config"))
fast = torch.compile(history.advance)
fast(1)
"""


def method_call(name: str, line: int, argument: Argument, *attributes: Argument, made: str | None = None) -> Trace:
    called = Call(0, None, f"History.{name}", line, (argument,), "History", made, True, True, 0.1, "", attributes)
    return Trace((called,), ())


ROWS, COUNT = Argument("rows", "torch.arange(4.0)", True), Argument("count", "2", True)


def test_a_method_of_an_object_that_can_not_be_made_is_a_function_of_what_it_reads() -> None:
    trace = method_call("advance", 6, Argument("by", "1", True), ROWS)
    text = after("isolate_call", METHOD, "copy_", "arange", "compile", trace=trace)
    assert "def advance(rows, by):\n    rows[by:].copy_(rows[:-by])" in text
    assert "torch.compile(advance)(torch.arange(4.0), 1)" in text
    assert "History" not in text


def test_a_method_that_sets_attributes_may_need_an_object_with_them() -> None:
    trace = method_call("put", 8, Argument("row", "3.0", True), COUNT, ROWS)
    text = after("isolate_call", METHOD, "self.count += 1", "arange", "compile", trace=trace)
    assert "def put(self, row):" in text
    assert "torch.compile(put)(types.SimpleNamespace(count=2, rows=torch.arange(4.0)), 3.0)" in text
    assert "import types" in text


def test_a_method_that_calls_others_keeps_its_object_with_the_attributes_that_it_had() -> None:
    trace = method_call("both", 11, Argument("by", "1", True), ROWS, made="History(None)")
    text = after("isolate_call", METHOD, "arange", "advance", "compile", trace=trace)
    assert "owner = History(None)\nowner.rows = torch.arange(4.0)\ntorch.compile(owner.both)(1)" in text


def test_the_numbers_that_a_call_had_are_tried_where_others_show_nothing() -> None:
    program = """
import torch
def f(x):
    return x.abs()
for x in open("clip").read().split(";"):
    values = [int(item) for item in x.split(",")]
    torch.compile(f)(torch.tensor(values))
"""
    given = Argument("x", "torch.randint(-64, 64, (40,))", False, "torch.tensor([7, -64])")
    trace = Trace((Call(0, None, "f", 3, (given,), None, None, True, True, 0.1),), ())
    text = after("isolate_call", program, "-64]", "compile", trace=trace)
    assert text.endswith("torch.compile(f)(torch.tensor([7, -64]))")


def test_the_search_goes_on_inside_through_every_call_of_a_function_that_has_several() -> None:
    program = """
import functools, torch
def scale(x):
    return x * 2
def keep(x):
    return x.relu()
def run(x, steps):
    return functools.reduce(lambda y, step: step(y), steps, x)
torch.compile(run)(torch.ones(3), [scale, keep])
"""
    x, steps = Argument("x", "torch.ones(3)", True), Argument("steps", "[scale, keep]", True)
    names = {"run": 7, "run.<locals>.<lambda>": 8, "scale": 3, "keep": 5}
    made = [(None, "run"), (0, "run.<locals>.<lambda>"), (1, "scale"), (0, "run.<locals>.<lambda>"), (3, "keep")]
    calls = tuple(
        Call(
            number, parent, name, names[name], (x, steps) if name == "run" else (x,), None, None, True, not number, 0.1
        )
        for number, (parent, name) in enumerate(made)
    )
    text = after("isolate_call", program, "relu", "compile", trace=Trace(calls, ()))
    assert text.endswith("torch.compile(keep)(torch.ones(3))")


@pytest.mark.parametrize(
    ("place", "left"),
    [
        ("call 1 output[0]", "torch.compile(step)(torch.ones(1), 1)"),
        ("backward 2 w.grad", "out = torch.compile(step)(torch.ones(1), 2)\nout['loss'].sum().backward()"),
        ("the script's end", "torch.compile(step)(torch.ones(1), 0)"),
    ],
)
def test_the_call_at_which_the_mismatch_was_seen_is_tried_first(place: str, left: str) -> None:
    program = """
import torch
def step(x, number):
    return {"loss": x * number}
for number in range(4):
    torch.compile(step)(torch.ones(1, requires_grad=True), number)["loss"].backward()
"""
    given = [{"x": "torch.ones(1)", "number": str(number)} for number in range(4)]
    calls = tuple(replace(call, differentiable=("['loss']",)) for call in roots_given("step", given))
    words = ("compile", ".backward()") if "backward" in left else ("compile",)
    assert after("isolate_call", program, *words, trace=Trace(calls, ()), place=place).endswith(left)


def test_a_call_that_needs_an_earlier_one_is_isolated_with_it() -> None:
    program = """
import torch
def turn(x, lean):
    return torch.atan2(x * lean, -x)
def legs():
    yield from (0.0, 0.5, -0.0)
for lean in legs():
    torch.compile(turn)(torch.ones(2), lean)
"""
    calls = roots_given("turn", [{"x": "torch.ones(2)", "lean": lean} for lean in ("0.0", "0.5", "-0.0")])
    text = after("isolate_call", program, " 0.0)", "-0.0)", "compile", trace=Trace(calls, ()), place="call 2 output")
    made = "compiled = torch.compile(turn)\ncompiled(torch.ones(2), 0.0)\ncompiled(torch.ones(2), -0.0)"
    assert text.endswith(made)


def roots_given(function: str, arguments: list[dict[str, str]]) -> tuple[Call, ...]:
    """Calls of what is compiled, a function on line 3, each with arguments by the names of its parameters."""
    texts = [tuple(Argument(name, text, True) for name, text in given.items()) for given in arguments]
    return tuple(
        Call(number, None, function, 3, given, None, None, True, True, 0.1, root_number=number)
        for number, given in enumerate(texts)
    )


def recorded(function: str, line: int, parents: tuple[int | None, ...], arguments: tuple[str, ...]) -> tuple[Call, ...]:
    """Calls of a function of one argument ``x`` that ran compiled, the roots being those without a parent."""
    calls = [
        Call(number, parent, function, line, (Argument("x", text, True),), None, None, True, parent is None, 0.1)
        for number, (parent, text) in enumerate(zip(parents, arguments))
    ]
    roots = [call.number for call in calls if call.root]
    return tuple(replace(call, root_number=roots.index(call.number) if call.root else None) for call in calls)


def test_a_second_call_with_the_same_arguments_is_isolated_and_the_one_inside_it() -> None:
    program = """
import torch
def count(x):
    count.n = getattr(count, "n", 0) + 1
    return x + count.n
def step(x):
    return count(x) * 2
for _ in range(3):
    torch.compile(step)(torch.ones(1))
print([torch.zeros(3, 4), torch.ones(5, 6), torch.full((7, 8), 9.0)])
"""
    roots = recorded("step", 6, (None,) * 3, ("torch.ones(1)",) * 3)
    roots = tuple(replace(root, number=root.number * 2) for root in roots)
    within = {"root": False, "root_number": None}
    inner = [replace(root, number=root.number + 1, parent=root.number, **within) for root in roots]
    inner = [replace(call, function="count", line=3) for call in inner]
    trace = Trace(tuple(sorted((*roots, *inner), key=lambda call: call.number)), ())
    text = after("isolate_call", program, "count.n", "compiled = ", trace=trace, place="call 1 output")
    assert text.endswith("compiled = torch.compile(count)\ncompiled(torch.ones(1))\ncompiled(torch.ones(1))")


def test_what_an_earlier_call_makes_dynamic_is_compiled_so() -> None:
    program = """
import torch
def step(x):
    loss = (x * 2).sum()
    loss.backward()
for size in (2, 3):
    torch.compile(step)(torch.ones(size, requires_grad=True))
"""
    calls = recorded("step", 3, (None, None), ("torch.ones(2)", "torch.ones(3)"))
    text = after("isolate_call", program, "dynamic=True", trace=Trace(calls, ()), place="call 1 ending")
    assert text.endswith("torch.compile(step, dynamic=True)(torch.ones(3))")


def test_a_call_that_needs_several_before_it_is_isolated_with_them() -> None:
    program = """
import torch
def step(x):
    return x * 2
for n in (3, 4, 2):
    torch.compile(step)(torch.ones(n))
print([torch.zeros(3, 4), torch.ones(5, 6), torch.full((7, 8), 9.0)], [torch.zeros(3, 4), torch.ones(5, 6)])
"""
    calls = recorded("step", 3, (None,) * 4, ("torch.ones(3)", "torch.ones(4)", "torch.ones(4)", "torch.ones(2)"))
    words = ("ones(3))", "ones(4))", "ones(2))", "compile")
    text = after("isolate_call", program, *words, trace=Trace(calls, ()), place="call 3 ending")
    made = "compiled = torch.compile(step)\ncompiled(torch.ones(3))\ncompiled(torch.ones(4))\ncompiled(torch.ones(2))"
    assert text.endswith(made)


def test_a_compiled_method_is_compiled_once() -> None:
    program = METHOD.replace("    def advance", "    @torch.compile(backend='eager')\n    def advance").replace(
        "fast = torch.compile(history.advance)\nfast(1)", "history.advance(1)"
    )
    trace = method_call("advance", 6, Argument("by", "1", True), ROWS, made="History(None)")
    text = after("isolate_call", program, "copy_", "compile", "History(None)", trace=trace)
    assert text.endswith("torch.compile(History(None).advance)(1)")
    assert "@" not in text
    text = after("isolate_call", program, "copy_", "arange", "compile", trace=trace)
    assert text.endswith("torch.compile(advance)(torch.arange(4.0), 1)")
    assert "@" not in text
