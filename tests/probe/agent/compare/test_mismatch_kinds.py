"""Each kind of mismatch is reported for a wrong script, and none for the correct script beside it.

Where the installed torch has no such bug any more, the script brings a backend that breaks its graph in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest
from releases import TORCHES

from torchbisect.core.verdict import MismatchKind
from torchbisect.probe.judge.observation import Observation

pytestmark = pytest.mark.torch

on_each_torch = pytest.mark.parametrize("agent", TORCHES, indirect=True, scope="session")


class Case(NamedTuple):
    """A script with a ``{hole}`` for a wrong and a right statement, and the expected first difference."""

    name: str
    script: str
    wrong: str
    right: str
    kind: MismatchKind
    place: str
    attribute: str


# A backend that runs its graph and passes the outputs to ``change``; eager runs do not use it.
BACKEND = """
def bad(gm, inputs):
    def run(*args):
        return change(gm(*args))
    return run
"""

CASES = [
    Case(
        "another value",
        BACKEND + "change = {hole}\nf = torch.compile(lambda x: x * 2, backend=bad)\nf(torch.randn(4))",
        "lambda out: (out[0] + 1e-2,)",
        "lambda out: (out[0] + 1e-7,)",
        MismatchKind.VALUES,
        "call 0 output",
        "value",
    ),
    Case(
        "another value in half precision",
        BACKEND + "change = {hole}\nx = torch.linspace(1, 2, 64, dtype=torch.bfloat16)\n"
        "torch.compile(lambda x: x * 2, backend=bad)(x)",
        "lambda out: (out[0] * 1.125,)",
        "lambda out: ((out[0].double() * (1 + 2**-8)).bfloat16(),)",
        MismatchKind.VALUES,
        "call 0 output",
        "value",
    ),
    Case(
        "one integer of many",
        BACKEND + "change = {hole}\nf = torch.compile(lambda x: x * 2, backend=bad)\nf(torch.arange(100))",
        "lambda out: (out[0].index_fill(0, torch.tensor([7]), 0),)",
        "lambda out: (out[0].clone(),)",
        MismatchKind.VALUES,
        "call 0 output",
        "value",
    ),
    Case(
        "NaN where eager has none",
        BACKEND + "change = {hole}\nf = torch.compile(lambda x: x / x, backend=bad)\nf(torch.tensor([1.0, 0.0]))",
        "lambda out: (out[0] * float('nan'),)",
        "lambda out: out",
        MismatchKind.VALUES,
        "call 0 output",
        "value",
    ),
    Case(
        "items left in a bounded deque",
        "import collections\n"
        "@torch.compile(backend='eager')\n"
        "def f(x):\n    d = collections.deque([1, 2], maxlen={hole})\n    d.append(3)\n    return x + len(d)\n"
        "f(torch.zeros(2))",
        "0",
        "1",
        MismatchKind.VALUES,
        "call 0 output",
        "value",
    ),
    Case(
        "another dtype",
        BACKEND + "change = {hole}\nf = torch.compile(lambda x: [x.cos()], backend=bad)\nf(torch.randn(4))",
        "lambda out: (out[0].double(),)",
        "lambda out: (out[0].float(),)",
        MismatchKind.METADATA,
        "call 0 output[0]",
        "dtype",
    ),
    Case(
        "keys in another order",
        "def f(x):\n    return {hole}\ntorch.compile(f, backend='eager')(torch.ones(2))",
        "dict(a=x + 1, b=x) if torch.compiler.is_compiling() else dict(b=x, a=x + 1)",
        "dict(b=x, a=x + 1)",
        MismatchKind.METADATA,
        "call 0 output",
        "order of keys",
    ),
    Case(
        "an argument's keys in another order",
        "from collections import OrderedDict\ndef f(x, d):\n    {hole}\n    return x + 1\n"
        "torch.compile(f, backend='eager')(torch.ones(2), OrderedDict(a=1, b=2))",
        "torch.compiler.is_compiling() or d.move_to_end('a')",
        "d['b'] = 3",
        MismatchKind.SIDE_EFFECTS,
        "call 0 argument d",
        "order of keys",
    ),
    Case(
        "what a dictionary has at a number",
        "def f(x, d):\n    {hole}\n    return x + 1\ntorch.compile(f, backend='eager')(torch.ones(2), {1: 1, '1': 2})",
        "torch.compiler.is_compiling() or d.update({1: 3})",
        "d[1] = 3",
        MismatchKind.SIDE_EFFECTS,
        "call 0 argument d[1]",
        "value",
    ),
    Case(
        "a key that is missing",
        "def f(x):\n    return {hole}\ntorch.compile(f, backend='eager')(torch.ones(2))",
        "dict(a=x + 1) if torch.compiler.is_compiling() else dict(b=x, a=x + 1)",
        "dict(b=x, a=x + 1)",
        MismatchKind.METADATA,
        "call 0 output",
        "keys",
    ),
    Case(
        "another shape",
        BACKEND + "change = {hole}\nf = torch.compile(lambda x: dict(y=x.sum(0)), backend=bad)\nf(torch.randn(4, 2))",
        "lambda out: (out[0][None],)",
        "lambda out: (out[0],)",
        MismatchKind.METADATA,
        "call 0 output['y']",
        "shape",
    ),
    Case(
        "a result detached from its graph",
        BACKEND + "change = {hole}\nf = torch.compile(lambda x: x.exp(), backend=bad)\n"
        "f(torch.randn(4, requires_grad=True))",
        "lambda out: (out[0].detach(),)",
        "lambda out: out",
        MismatchKind.METADATA,
        "call 0 output",
        "requires_grad",
    ),
    Case(
        "row-major where eager is column-major",
        BACKEND + "change = {hole}\nf = torch.compile(lambda x: x.t() + 1, backend=bad)\nf(torch.randn(4, 3))",
        "lambda out: (out[0].contiguous(),)",
        "lambda out: (out[0].t().clone().t(),)",
        MismatchKind.METADATA,
        "call 0 output",
        "stride",
    ),
    Case(
        "an in-place write through a view with gaps",
        "@torch.compile(backend='aot_eager')\n"
        "def f(x):\n    x.unfold(0, 2, {hole}).mul_(10)\n    return None\n"
        "f(torch.arange(1.0, 11.0))",
        "4",
        "2",
        MismatchKind.MUTATION,
        "call 0 argument x",
        "value",
    ),
    Case(
        "an argument written to in one run only",
        BACKEND + "change = {hole}\nkept = torch.zeros(3)\n@torch.compile(backend=bad)\n"
        "def f(x):\n    return x + 1\nf(kept)",
        "lambda out: (kept.add_(1), out)[1]",
        "lambda out: out",
        MismatchKind.MUTATION,
        "call 0 argument x",
        "value",
    ),
    Case(
        "an object that a module holds",
        "class Log:\n    def __init__(self):\n        self.lines = []\n"
        "class Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.log = Log()\n"
        "    def forward(self, x):\n        {hole}\n        return x + 1\n"
        "torch.compile(torch.nn.Sequential(Net()), backend='eager')(torch.ones(2))",
        "torch.compiler.is_compiling() or self.log.lines.append(1)",
        "self.log.lines.append(1)",
        MismatchKind.SIDE_EFFECTS,
        "call 0 self.0.log.lines",
        "length",
    ),
    Case(
        "a buffer that isn't updated",
        "class Net(torch.nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.register_buffer('seen', torch.zeros(1))\n"
        "    def forward(self, x):\n        {hole}\n        return x\n"
        "net = torch.compile(Net(), backend='eager')\nnet(torch.ones(2))",
        "torch.compiler.is_compiling() or self.seen.add_(1)",
        "self.seen.add_(1)",
        MismatchKind.MUTATION,
        "call 0 self.seen",
        "value",
    ),
    Case(
        "an output that shares the input's memory",
        BACKEND + "change = lambda out: out\nf = torch.compile(lambda x: {hole}, backend='eager')\nf(torch.randn(4))",
        "x[:] if torch.compiler.is_compiling() else x[:].clone()",
        "x[1:]",
        MismatchKind.ALIASING,
        "call 0 output",
        "shared storage with argument x",
    ),
    Case(
        "two outputs that share memory",
        "@torch.compile(backend='eager')\ndef f(x):\n    a = x + 1\n    return a, {hole}\nf(torch.randn(4))",
        "a[:] if torch.compiler.is_compiling() else a.clone()",
        "a.view(2, 2)",
        MismatchKind.ALIASING,
        "call 0 output[1]",
        "shared storage with output[0]",
    ),
    Case(
        "an output that should be a view of its input",
        "@torch.compile(backend='eager')\ndef f(x):\n    return {hole}\nf(torch.randn(4))",
        "x[1:].clone() if torch.compiler.is_compiling() else x[1:]",
        "x[1:].view(3)",
        MismatchKind.ALIASING,
        "call 0 output",
        "shared storage with argument x",
    ),
    Case(
        "a wrong value after an output that shares memory, which nothing writes to",
        "@torch.compile(backend='eager')\ndef f(x, factor):\n    return {hole}\n"
        "f(torch.randn(4), 1)\nf(torch.randn(4), 2)",
        "(x[:] if factor == 1 else x) if torch.compiler.is_compiling() else x * factor",
        "x * factor",
        MismatchKind.VALUES,
        "call 1 output",
        "value",
    ),
    Case(
        "a gradient that is wrong",
        "@torch.compile(backend='eager')\ndef f(x):\n    return (x * {hole}).sum()\n"
        "x = torch.randn(3, requires_grad=True)\nf(x - x.detach()).backward()",
        "(3 if torch.compiler.is_compiling() else 2)",
        "2",
        MismatchKind.GRADIENTS,
        "backward 0 x.grad",
        "value",
    ),
    Case(
        "a gradient that is missing",
        "@torch.compile(backend='eager')\ndef f(x, y):\n    return (x * 0 + {hole}).sum()\n"
        "x, y = torch.zeros(3, requires_grad=True), torch.zeros(3, requires_grad=True)\nf(x, y).backward()",
        "(y.detach() if torch.compiler.is_compiling() else y)",
        "y",
        MismatchKind.GRADIENTS,
        "backward 0 argument y.grad",
        "type",
    ),
    Case(
        "a gradient that an intermediate retains",
        "@torch.compile(backend='eager')\ndef f(x):\n    h = x.exp()\n    return h, h.sum()\n"
        "h, loss = f(torch.zeros(3, requires_grad=True))\nif {hole}: h.retain_grad()\nloss.backward()",
        "not torch._dynamo.utils.counters['stats']['unique_graphs']",
        "True",
        MismatchKind.GRADIENTS,
        "backward 0 call 0 output[0].grad",
        "type",
    ),
    Case(
        "a gradient of a model in front of a compiled loss",
        "@torch.compile(backend='eager')\ndef loss(y):\n    return (y - y.detach()).sum() * {hole}\n"
        "def step(model, x):\n    loss(model(x)).backward()\n"
        "step(torch.nn.Linear(2, 1), torch.ones(1, 2))",
        "(3 if torch.compiler.is_compiling() else 2)",
        "2",
        MismatchKind.GRADIENTS,
        "backward 0 model.weight.grad",
        "value",
    ),
    Case(
        "a gradient of the second of two modules",
        "class Net(torch.nn.Module):\n    def __init__(self, factor):\n        super().__init__()\n"
        "        self.p, self.factor = torch.nn.Parameter(torch.ones(2)), factor\n"
        "    def forward(self, x):\n        return x + (self.p - self.p.detach()) * self.factor * {hole}\n"
        "f, g = (torch.compile(Net(factor), backend='eager') for factor in (0.0, 1.0))\n"
        "g(f(torch.ones(2))).sum().backward()",
        "(3 if torch.compiler.is_compiling() else 2)",
        "2",
        MismatchKind.GRADIENTS,
        "backward 0 self.p (2).grad",
        "value",
    ),
    Case(
        "a second derivative that is wrong",
        "@torch.compile(backend='eager')\ndef f(x):\n    return x ** {hole}\n"
        "x = torch.tensor([1.0], requires_grad=True)\n"
        "(g,) = torch.autograd.grad(f(x).sum() * 0 + (f(x) - f(x).detach()).sum(), x, create_graph=True)\n"
        "torch.autograd.grad(g.sum(), x)",
        "(3 if torch.compiler.is_compiling() else 2)",
        "2",
        MismatchKind.GRADIENTS,
        "backward 0 gradient[0]",
        "value",
    ),
    Case(
        "a forward hook registered after the first compile",
        "net = torch.nn.Sequential(torch.nn.Linear(2, 2))\nf = torch.compile(net, backend='eager')\n"
        "{hole}f(torch.ones(1, 2))\nnet[0].register_forward_hook(lambda m, i, o: o + 100)\nf(torch.ones(1, 2))",
        "",
        "0 and ",
        MismatchKind.VALUES,
        "call 1 output",
        "value",
    ),
    Case(
        "a tensor hook that runs too often",
        "seen = []\nx = torch.ones(2, requires_grad=True)\nx.register_hook(lambda g: seen.extend([0] * {hole}))\n"
        "@torch.compile(backend='eager')\ndef f(x):\n    return x * 2\nf(x).sum().backward()",
        "(2 if torch._dynamo.utils.counters['stats']['unique_graphs'] else 1)",
        "2",
        MismatchKind.HOOKS,
        "global seen",
        "length",
    ),
    Case(
        "a list that a local class's method fills",
        "def make():\n    log = []\n    class Recorder:\n        def hit(self):\n            log.append(1)\n"
        "    def step(x):\n        {hole}\n        return x * 2\n    return step, log\n"
        "step, log = make()\ntorch.compile(step, backend='eager')(torch.ones(2))",
        "Recorder().hit()",
        "log.append(1)",
        MismatchKind.SIDE_EFFECTS,
        "call 0 closure log",
        "length",
    ),
    Case(
        "a list that a local class's method fills and that is not returned",
        "def make():\n    log = []\n    class Recorder:\n        def hit(self):\n            log.append(1)\n"
        "    def step(x):\n        {hole}\n        return x * 2\n    return step\n"
        "torch.compile(make(), backend='eager')(torch.ones(2))",
        "Recorder().hit()",
        "Recorder()",
        MismatchKind.SIDE_EFFECTS,
        "call 0 closure log",
        "length",
    ),
    Case(
        "a list of a base class that a part of a module fills",
        "class Base(torch.nn.Module):\n    log = []\n"
        "class Part(Base):\n    def forward(self, x):\n        {hole}\n        return x + 1\n"
        "torch.compile(torch.nn.Sequential(Part()), backend='eager')(torch.ones(2))",
        "torch.compiler.is_compiling() or Part.log.append(1)",
        "Part.log",
        MismatchKind.SIDE_EFFECTS,
        "call 0 global Base.log",
        "length",
    ),
    Case(
        "a list of a class that a function names",
        "class Log:\n    lines = []\n"
        "@torch.compile(backend='eager')\ndef f(x):\n    {hole}\n    return x + 1\n"
        "f(torch.ones(2))",
        "torch.compiler.is_compiling() or Log.lines.append(1)",
        "Log.lines",
        MismatchKind.SIDE_EFFECTS,
        "call 0 global Log.lines",
        "length",
    ),
    Case(
        "a number of a class",
        "class Log:\n    count = 0\n"
        "@torch.compile(backend='eager')\ndef f(x):\n    {hole}\n    return x + 1\n"
        "f(torch.ones(2))\nLog.count = 0",
        "Log.count += 0 if torch.compiler.is_compiling() else 1",
        "Log.count",
        MismatchKind.SIDE_EFFECTS,
        "call 0 global Log.count",
        "value",
    ),
    Case(
        "a number of a module's class",
        "class Net(torch.nn.Module):\n    count = None\n"
        "    def forward(self, x):\n        {hole}\n        return x + 1\n"
        "torch.compile(Net(), backend='eager')(torch.ones(2))",
        "type(self).count = None if torch.compiler.is_compiling() else 1",
        "type(self).count",
        MismatchKind.SIDE_EFFECTS,
        "call 0 global Net.count",
        "type",
    ),
    Case(
        "a counter on the module",
        "class Net(torch.nn.Module):\n    count = 0\n"
        "    def forward(self, x):\n        {hole}\n        return x + 1\n"
        "net = Net()\nnet.compile(backend='eager')\nnet(torch.ones(2)), net(torch.ones(2))",
        "self.count += 0 if torch.compiler.is_compiling() else 1\n        self.seen = self.count",
        "self.seen = 3",
        MismatchKind.SIDE_EFFECTS,
        "call 0 self.count",
        "value",
    ),
    Case(
        "a line that is not printed",
        "@torch.compile(backend='eager')\ndef f(x):\n    return x + 1\nf(torch.ones(2))\nprint('one')\n"
        "if {hole}:\n    print('two')",
        "not torch._dynamo.utils.counters['stats']['unique_graphs']",
        "True",
        MismatchKind.SIDE_EFFECTS,
        "printed line 1",
        "text",
    ),
    Case(
        "an exception that only eager raises, caught",
        "def f(x):\n    return torch.nn.functional.celu_(x, alpha={hole})\n"
        "try:\n    torch.compile(f, backend='aot_eager_decomp_partition')(torch.randn(3))\n"
        "except RuntimeError:\n    pass",
        "0.0",
        "1.0",
        MismatchKind.MISSING_RAISE,
        "call 0",
        "exception",
    ),
    Case(
        "an exception that only the compiled call raises, caught",
        BACKEND + "def change(out):\n    {hole}\n    return out\n"
        "try:\n    torch.compile(lambda x: x + 1, backend=bad)(torch.randn(3))\nexcept ValueError:\n    pass",
        "raise ValueError('no')",
        "pass",
        MismatchKind.RAISES,
        "call 0",
        "exception",
    ),
    Case(
        "another exception, caught",
        BACKEND + "def change(out):\n    {hole}\n    return out\n"
        "@torch.compile(backend=bad)\ndef f(x):\n    if x.sum() > 0:\n        raise ValueError('no')\n"
        "try:\n    f(torch.ones(3))\nexcept (KeyError, ValueError):\n    pass",
        "raise KeyError('no')",
        "pass",
        MismatchKind.RAISES_DIFFERENTLY,
        "call 0",
        "exception",
    ),
]


@on_each_torch
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_wrong_script_is_reported_with_kind_and_place(case: Case, observe: Callable[..., Observation]) -> None:
    seen = observe(case.script.replace("{hole}", case.wrong))
    assert seen.differences, seen
    first = seen.differences[0]
    assert (first.kind, first.place, first.attribute) == (case.kind, case.place, case.attribute), seen.differences[:4]


def test_wrong_values_have_a_histogram_and_a_map(observe: Callable[..., Observation]) -> None:
    (case,) = [case for case in CASES if case.name == "one integer of many"]
    detail = observe(case.script.replace("{hole}", case.wrong)).differences[0].detail
    assert detail["histogram"]["counts"][-1] == 1
    assert sum(value for row in detail["map"] for value in row) == 1


def test_keys_are_shown_as_python_writes_them(observe: Callable[..., Observation]) -> None:
    change = "torch.compiler.is_compiling() or d.update({1: d.pop(1)})"
    script = f"def f(x):\n    d = {{1: x, '1': x + 1}}\n    {change}\n    return d\n"
    first = observe(script + "torch.compile(f, backend='eager')(torch.ones(2))").differences[0]
    assert (first.attribute, first.eager, first.compiled) == ("order of keys", "['1', 1]", "[1, '1']")


@on_each_torch
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_right_script_shows_no_difference(case: Case, observe: Callable[..., Observation]) -> None:
    seen = observe(case.script.replace("{hole}", case.right))
    assert seen.eager.how == seen.compiled.how == "finished", (seen.eager.raised, seen.compiled.raised, seen.notes)
    assert seen.compiled.graphs or "0 and" in case.right
    assert seen.differences == ()
