"""A trace has what a called method was called on: how to make it, and the attributes that it had."""

from __future__ import annotations

import pytest

from torchbisect.core.repro import Repro
from torchbisect.core.trace import Trace
from torchbisect.probe.probe import Probe

pytestmark = pytest.mark.torch

SCRIPT = """\
import functools
import torch

RULES = {}

def rule(name):
    def note(factory):
        @functools.wraps(factory)
        def made(*args, **options):
            return factory(*args, **options)
        RULES[name] = made
        return made
    return note

@rule("clip")
def clip(limit, *, below=True):
    class Clip:
        def __init__(self, scale):
            self.scale = scale
        def apply(self, x):
            return x.clamp(max=limit * self.scale)
    return Clip

def scaled(factor):
    def scale(x):
        return x * factor
    return scale

def numbers(count, *, start=0):
    yield from range(start, start + count)

class Queue:
    def __init__(self, first, second):
        self.waiting = [*first, *second]
    def pairs(self, by):
        yield from zip(self.waiting[::by], self.waiting[1::by])

queue = Queue(numbers(2), numbers(3, start=5))

def served(queue, pairs, begun, weight):
    return [{"none": None, "loss": weight * len(queue.waiting)}]

begun = numbers(3)
next(begun)
served(queue, queue.pairs(2), begun, torch.ones(2, requires_grad=True))

class History(torch.nn.Module):
    limit = 8

    def __init__(self, size):
        super().__init__()
        self.register_buffer("rows", torch.zeros(size))
        self.layer, self.count, self.unread = torch.nn.Linear(2, 2), 0, 1

    def put(self, value):
        self.rows[self.count] = value
        self.count = min(self.count + 1, self.limit)
        return [self.layer for _ in range(1)]

history = History(3)
history.put(5.0)
history.put(6.0)

def use(rules, act, x):
    for one in rules:
        x = one(2.0).apply(x)
    return act(x)

use([RULES["clip"](1.5, below=False)], scaled(3), torch.ones(2))
"""


STRICT = """\
import torch

class Config(dict):
    def __getattr__(self, name):
        return self[name]
    def __eq__(self, other):
        raise TypeError("configurations are not compared")
    def width(self, factor=1):
        return self.size * factor

config = Config(size=3)
for factor in (1, config.width()):
    x = torch.ones(config.width(factor))
print(x.sum())
"""


@pytest.fixture(scope="module")
def trace(probe: Probe) -> Trace:
    return probe.trace(Repro(SCRIPT))


def test_the_attributes_that_a_method_names_are_recorded_as_they_were_at_each_call(trace: Trace) -> None:
    first, second = (call for call in trace.calls if call.function == "History.put")
    assert {item.name: item.text for item in first.attributes} == {
        "rows": "torch.zeros(3)",
        "count": "0",
        "limit": "8",
        "layer": "torch.nn.Linear(2, 2)",
    }
    assert {item.name: item.text for item in second.attributes if item.name != "layer"} == {
        "rows": "torch.tensor([5.0, 0.0, 0.0])",
        "count": "1",
        "limit": "8",
    }


def test_what_a_function_defines_and_returns_is_written_as_the_call_that_made_it(trace: Trace) -> None:
    (call,) = (call for call in trace.calls if call.function == "use")
    rules, act, _ = (item.text for item in call.arguments)
    assert rules == "[clip(1.5, below=False)]"
    assert act == "scaled(3)"
    (applied,) = (call for call in trace.calls if call.function.endswith("Clip.apply"))
    assert applied.owner_text == "clip(1.5, below=False)(2.0)"


def test_a_generator_that_has_not_begun_is_written_as_the_call_that_made_it(trace: Trace) -> None:
    (call,) = (call for call in trace.calls if call.function == "served")
    queue, pairs, begun, _ = (item.text for item in call.arguments)
    assert queue == "Queue(numbers(2, start=0), numbers(3, start=5))"
    assert pairs == f"{queue}.pairs(2)"
    assert begun is None


def test_a_trace_has_the_way_to_the_tensor_at_which_a_backward_pass_begins(trace: Trace) -> None:
    (served,) = (call for call in trace.calls if call.function == "served")
    assert served.differentiable == ("[0]['loss']",)
    assert {call.differentiable for call in trace.calls if call.function == "History.put"} == {()}


def test_what_a_class_of_the_script_raises_does_not_end_the_trace(probe: Probe) -> None:
    found = probe.trace(Repro(STRICT))
    called = [call for call in found.calls if call.function == "Config.width"]
    assert [[item.text for item in call.arguments] for call in called] == [["1"], ["1"], ["3"]]


LATE = """\
import torch

def halved(x):
    return x / 2

@torch.compile(backend="eager")
def step(x):
    return halved(x) + 1

for number in range(20):
    step(torch.tensor(float(number)))
"""


def test_a_late_call_of_what_is_compiled_is_recorded(probe: Probe) -> None:
    found = probe.trace(Repro(LATE))
    steps = [call.arguments[0].text for call in found.calls if call.root]
    assert steps == [f"torch.tensor({number}.0)" for number in range(20)], "a mismatch is named by such a number"
    assert sum(call.function == "halved" for call in found.calls) < 20


AFTER_MANY = """\
import torch

@torch.compile(backend="eager")
def step(x):
    return x + 1

@torch.compile(backend="eager")
def last(x):
    return x - 1

for _ in range(120):
    step(torch.ones(2))
last(torch.ones(3))
"""


def test_a_call_has_the_number_that_the_place_of_a_mismatch_has(probe: Probe) -> None:
    roots = [call for call in probe.trace(Repro(AFTER_MANY)).calls if call.root]
    assert len(roots) < 121, "not all are recorded"
    assert (roots[0].root_number, roots[-1].root_number, roots[-1].function) == (0, 120, "last")
