"""What each pass does, on small programs and an oracle that asks for a few words."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

import pytest

from torchbisect.core.trace import Argument, Call, Trace, Value
from torchbisect.core.verdict import Answer, Verdict
from torchbisect.minimizer.budget import Budget
from torchbisect.minimizer.candidate_filter import CandidateFilter
from torchbisect.minimizer.compile_reachability import compiles_but_never_calls
from torchbisect.minimizer.defects import count_defects
from torchbisect.minimizer.interestingness import InterestingnessTest
from torchbisect.minimizer.minimize import PASSES, minimize
from torchbisect.minimizer.passes import module_to_function
from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit, tidy
from torchbisect.minimizer.syntax.side_effects import may_have_side_effects
from torchbisect.minimizer.syntax.torch_names import TorchNames
from torchbisect.minimizer.syntax.tree import expression, parse, text_of
from torchbisect.minimizer.syntax.unbound_names import unbound_names

_FUNCTION = """\
torch.compile
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        return x
    @staticmethod
    def backward(ctx, g):
        {}
"""


def having(*words: str) -> Callable[[str], Verdict]:
    """Whether all of these stand in the text, in whatever layout."""
    return lambda text: Verdict(Answer.SAME if all(word in text for word in words) else Answer.NONE)


def after(name: str, program: str, *words: str, trace: Trace | None = None) -> str:
    """The program after one pass, while these words stay."""
    tree = tidy(parse(program))
    test = InterestingnessTest(having(*words), Budget(), lambda progress: None, filter=CandidateFilter.of(tree))
    search = ReductionSearch(tree, test, trace=trace)
    dict(PASSES)[name](search)
    return search.text


@pytest.mark.parametrize(
    ("name", "program", "words", "left"),
    [
        (
            "remove_unused",
            "import os, sys\nx: int = 1\ndef f(a: int) -> int:\n    return sys\nf(1)",
            ["f(1)"],
            "import sys",
        ),
        ("remove_unused", "class A:\n    N = 2\n    M = 3\nkeep(A().N)", ["keep"], "class A:\n    N = 2\nkeep(A().N)"),
        ("delete_statements", "a = 1\nb = 2\nif a:\n    c = 3\n    keep(b)\nd = 4", ["keep"], "b = 2\nif a:"),
        ("unwrap_blocks", "with open(p) as f:\n    for i in range(3):\n        keep()", ["keep"], "keep()"),
        ("unwrap_blocks", "a, b = (f(), g())\nkeep(a)", ["keep", "f()\n"], "a = f()\nb = g()\nkeep(a)"),
        (
            "unwrap_blocks",
            "for i, (a, b) in enumerate(zip((1, 2), (3,))):\n    keep(i, a, b)\n    other(i)",
            ["keep", "other"],
            "keep(0, 1, 3)\nother(0)",
        ),
        (
            "inline",
            "def f(a, *b):\n    c = g(b)\n    return c\ndef h(f):\n    return f\nkeep(f(1, 2, 3))",
            ["keep", "h"],
            "b = (2, 3)\nc = g(b)\nkeep(c)",
        ),
        ("delete_elements", "keep(a, b=1, c=[1, 2, {'k': 3}])", ["keep", "3"], "keep(a, c=[3])"),
        ("hoist_subexpressions", "keep(torch.relu(x.view(2) @ w) + 1)", ["keep", "w"], "keep(w)"),
        ("shrink_constants", "keep(torch.randn(17, 32, 32), 0.25)", ["keep", "3"], "keep(torch.randn(1, 1, 3), 1)"),
        ("inline", "def f(a, b=2):\n    c = a + b\n    return c\nkeep(f(g()))", ["keep"], "a = g()\nc = a + 2"),
        ("substitute", "n = 4\nh = x + n\nkeep(h)", ["keep", "x"], "keep(x + 4)"),
        ("fold", "class C:\n    n: int = 4\nkeep(C().n, [a, b][0] if True else c)", ["keep"], "keep(4, a)"),
        (
            "delete_parameters",
            "def f(x, y, z):\n    return x + y\nkeep(f(a, 1, b))",
            ["keep"],
            "def f(x):\n    return x + 1",
        ),
        ("delete_parameters", "def f():\n    return a, b\nx, y = f()\nkeep(x)", ["keep", "a"], "return a\nx = f()"),
        (
            "delete_parameters",
            "def f(c, n, x):\n    return x + n\ng = partial(f, C(), 3)\nkeep(g(1))",
            ["keep", "g(1)"],
            "def f(x):\n    return x + 3\ng = partial(f)",
        ),
        (
            "delete_parameters",
            "class N(Module):\n    def forward(self, x, y):\n        return 1\nclass M:\n    def __init__(self, x):\n"
            "        pass\nm = M(3)\nn = N()\nkeep(n(2, 4), m)",
            ["keep"],
            "class N(Module):\n\n    def forward(self):\n        return 1\n\nclass M:\n\n    def __init__(self):\n"
            "        pass\nm = M()\nn = N()\nkeep(n(), m)",
        ),
        (
            "fold",
            "class N(Module):\n    def __init__(self):\n        super().__init__()\n        self.w = Parameter(1)\n"
            "    def forward(self):\n        return 1\nn = N()\n"
            "a, p = next(n.named_parameters())\nkeep(p, next(iter(n.parameters())))",
            ["keep"],
            "a, p = ('w', n.w)\nkeep(p, n.w)",
        ),
        (
            "unwrap_blocks",
            "layers = [make() for i in range(3)]\nkeep(layers[2], get('body.layers.2'))",
            ["keep", "layers[0]", "layers.0"],
            "layers = [make()]\nkeep(layers[0], get('body.layers.0'))",
        ),
        (
            "unwrap_blocks",
            "keep([f(i, n) for i, n in enumerate(names)])",
            ["keep", "f("],
            "keep([f(0, next(iter(names)))])",
        ),
        ("unwrap_blocks", "keep([f(n) for i, n in enumerate(iterable=x)])", ["keep", "f("], "enumerate(iterable=x)"),
        ("unwrap_blocks", "for i, n in enumerate(iterable=x):\n    keep(n)", ["keep(n)"], "in enumerate(iterable=x)"),
        ("unwrap_blocks", "for a, b in enumerate(c[a:]):\n    continue\nkeep(1)", ["keep", "enumerate"], "keep(1)"),
        (
            "registries",
            "HOOKS = {}\ndef hook(name):\n    def add(function):\n        HOOKS[name] = function\n"
            "        return function\n    return add\n@hook('one')\ndef one():\n    return 1\n"
            "@hook('two')\ndef two():\n    return 2\n"
            "keep(HOOKS['two']())",
            ["keep", "return 2"],
            "def two():\n    return 2\nkeep(two())",
        ),
        (
            "substitute",
            "class A:\n    def __init__(self):\n        self.rate = 3\n        self.names = {'a': 'b'}\n"
            "        self.n = 1\n    def go(self):\n        self.n = 2\n"
            "        keep(self.rate, self.n, self.names)\nA().go()",
            ["keep"],
            "keep(3, self.n, {'a': 'b'})",
        ),
        (
            "fold",
            "keep(dict(m.named_modules())['body.layers.1'], next(iter({'a': 'b'}.items())))",
            ["keep"],
            "keep(m.body.layers[1], ('a', 'b'))",
        ),
        (
            "unwrap_blocks",
            "class A:\n    def __enter__(self):\n        first()\n    def __exit__(self, *problem):\n"
            "        return False\nwith A():\n    keep()",
            ["keep", "first()", "A()"],
            "A().__enter__()\nkeep()",
        ),
        (
            "flatten_classes",
            "class A:\n    class B:\n        class C:\n            n = 1\n        def f(self):\n"
            "            return self.C.n\n    def g(self):\n        return self.B().f()\nkeep(A().g(), A.B.C)",
            ["keep"],
            "class C:\n    n = 1\n\nclass B:\n\n    def f(self):\n        return C.n\n\n"
            "class A:\n\n    def g(self):\n        return B().f()\nkeep(A().g(), C)",
        ),
        ("fold", "keep(1, *(a, b))", ["keep"], "keep(1, a, b)"),
        (
            "inline",
            "class A:\n    def step(self, /, n):\n        self.n = n\n        return self.inner(n)\n"
            "    def inner(self, n):\n        return self.n + n\n    def __call__(self):\n        return 1\n"
            "a = A()\nkeep(a.step(2), a())",
            ["keep"],
            "class A:\n\n    def __call__(self):\n        return 1\na = A()\na.n = 2\nkeep(a.n + 2, a())",
        ),
        ("fold", "keep(getattr(a, 'forward')(x))", ["keep"], "keep(a.forward(x))"),
        (
            "remove_unused",
            "class A:\n    def on_start(self):\n        keep(1)\n    def on_end(self):\n        pass\n"
            "def emit(event):\n    getattr(A(), event)()\nemit('on_start')",
            ["keep", "on_start(self)"],
            "class A:\n\n    def on_start(self):\n        keep(1)\n\n"
            "def emit(event):\n    getattr(A(), event)()\nemit('on_start')",
        ),
        (
            "flatten_classes",
            "class A(M):\n    def __init__(self, n):\n        super().__init__()\n        self.n = n\n"
            "    def one(self):\n        return 1\n    def two(self):\n        return 2\n"
            "class B(A):\n    def __init__(self, n):\n        super().__init__(n)\n        self.m = n\n"
            "    def two(self):\n        return 3\nkeep(B(1).two())",
            ["keep", "one(self)"],
            "class B(M):\n\n    def one(self):\n        return 1\n\n    def __init__(self, n):\n"
            "        super().__init__()\n        self.m = n\n\n    def two(self):\n        return 3\nkeep(B(1).two())",
        ),
        ("fold", "class A:\n    names: tuple = ('a', 'b')\nkeep(A().names)", ["keep"], "keep(('a', 'b'))"),
        ("flatten_classes", "class A:\n    n = 1\nclass B(A):\n    pass\nkeep(B().n)", ["keep"], "n = 1\nkeep(A().n)"),
        ("replace_layers", "l = torch.nn.Linear(2, 3)\nkeep(l(x))", ["keep"], "keep(x)"),
        ("replace_layers", "keep(torch.nn.Parameter(torch.ones(1)))", ["keep", "grad"], "ones(1, requires_grad=True)"),
        ("imports", "import torch\nimport torch.nn.functional as F\nkeep(F.relu(x))", ["keep"], "keep(torch.relu(x))"),
        (
            "imports.torch_by_name",
            "import torch as th\nkeep(th.ones(2))",
            ["keep"],
            "import torch\nkeep(torch.ones(2))",
        ),
        ("idioms", "def f(x):\n    return x + 1\nkeep(torch.compile(f)(y))", ["keep", "lambda"], "(lambda x: x + 1)"),
        ("rename", "def helper(values):\n    return values\nweights = helper(keep)", ["keep"], "def f(x):"),
        ("lift", "def f():\n    keep(torch.ones(1))\nf()", ["keep"], "def f(x):\n    keep(x)\nf(torch.ones(1))"),
        (
            "remove_unused",
            "def h(a):\n    return keep(a)\nclass F(torch.autograd.Function):\n    @staticmethod\n"
            "    def forward(ctx, x, a):\n        ctx.save_for_backward(a)\n        ctx.n = 1\n        return x\n"
            "    @staticmethod\n    def backward(ctx, g):\n        a, = ctx.saved_tensors\n        return g * 2, None\n"
            "h(F.apply(x, 1))",
            ["keep", "F.apply(x, 1)"],
            "def forward(ctx, x, a):\n        return x\n\n    @staticmethod\n    def backward(ctx, g):\n"
            "        return (g * 2, None)",
        ),
        (
            "remove_unused",
            "class Step(NamedTuple):\n    a: int\n    b: int\n    c: int\nkeep(Step(1, 2, 3).c)",
            ["keep"],
            "class Step(NamedTuple):\n    c: int\nkeep(Step(3).c)",
        ),
        ("remove_unused", "a = torch.ones(2)\nb = keep()\nc = a", ["keep"], "keep()"),
        (
            "unwrap_blocks",
            "rules = [f, g]\nfor rule in rules:\n    keep(rule(1))",
            ["f(1)", "g(1)"],
            "keep(f(1))\nkeep(g(1))",
        ),
        (
            "fold",
            "class C(NamedTuple):\n    a: int\n    b: int\nkeep(C(1, b=f()).b, C(a, 2).a)",
            ["keep"],
            "keep(f(), a)",
        ),
        ("unwrap_blocks", "keep([f(i) for i in [g, 2]])", ["keep", "f("], "keep([f(g)])"),
        (
            "unwrap_blocks",
            "try:\n    a = f()\n    b = g(a)\n    keep(b)\nexcept ValueError:\n    pass",
            ["try", "g(a)"],
            "a = f()\nb = g(a)\ntry:\n    keep(b)",
        ),
        (
            "substitute",
            "def f(x):\n    return x\nclass A:\n    def __init__(self):\n        self.f = f\n"
            "    def go(self):\n        keep(self.f(1), self.f(2))\nA().go()",
            ["keep"],
            "keep(f(1), f(2))",
        ),
        ("unwrap_blocks", "w = [f()]\nfor d in w:\n    keep(d(1))", ["keep", "f()"], "w = f()\nkeep(w(1))"),
        ("unwrap_blocks", "keep([f() for a in 'abc'])", ["keep", "f()"], "keep([f()])"),
        ("substitute", "a = []\nb = f()\na.append(b)\nkeep(a, a)", ["keep", "f"], "a = [f()]\nkeep(a, a)"),
        ("fold", "a = [f, g]\nkeep(next(iter(a))(1), a)", ["keep"], "keep(f(1), a)"),
        ("fold", "keep(functools.partial(f, 1, b=2)(3, b=4, c=5))", ["keep"], "keep(f(1, 3, b=4, c=5))"),
        ("fold", "o = argparse.Namespace(rate=3, n='a')\nkeep(o.rate, o.n, o.m)", ["keep"], "keep(3, 'a', o.m)"),
        ("shrink_constants", "keep(x.view(4, 8), y.view(32))", ["keep"], "keep(x.view(1, 1), y.view(1))"),
        (
            "return_argument",
            "def f(x, y):\n    z = x * 2\n    return torch.cat((z, z))\nf(keep, 1)",
            ["keep"],
            "return x",
        ),
    ],
)  # fmt: skip
def test_a_pass_does_what_it_says(name: str, program: str, words: list[str], left: str) -> None:
    assert left in after(name, program, *words)


def test_a_module_becomes_a_function() -> None:
    program = """
class Net(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.w = torch.ones(width)
        self.register_buffer("b", torch.zeros(width))
    def double(self, x):
        return x * 2
    def forward(self, x):
        return self.double(x) * self.w + self.b
model = Net(4)
keep(model(x))
"""
    text = after("module_to_function", program, "keep", "double")
    assert "class" not in text
    assert "self" not in text
    assert "def model(x):" in text
    assert "w = torch.ones(4)" in text
    assert "b = torch.zeros(4)" in text


def test_a_class_that_calls_its_methods_at_its_making_and_holds_another_class() -> None:
    program = """
class Run:
    def __init__(self):
        def size():
            return 3
        self.size = size()
        self.step = self.build()
    def build(self):
        class Log:
            def __init__(self, size):
                self.size = size
            def keep(self):
                return self.size
        return lambda: Log(self.size).keep()
    def go(self):
        return self.step()
Run().go()
"""
    # As far as the class goes; the one inside is made in one place too, and would follow.
    text = text_of(next(module_to_function.flattened(parse(program))))
    assert "class Run" not in text
    assert "self.size = size" in text
    ran: dict[str, object] = {}
    exec(text + "\nseen = go()", ran)
    assert ran["seen"] == 3


def test_an_autograd_functions_argument_goes_everywhere() -> None:
    program = """
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t, a, b):
        ctx.save_for_backward(a, b)
        return t
    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * b, None, None
keep(Scale.apply(x, y, z))
"""
    text = after("autograd_function_args", program, "keep", "g * b")
    assert "Scale.apply(x)" in text or "Scale.apply(x, z)" in text
    assert "(ctx, t, a, b)" not in text


def test_what_did_not_run_goes_in_one_question() -> None:
    program = "def f(x):\n    if x:\n        a()\n    else:\n        b()\n"
    program += "    try:\n        c()\n    except E:\n        d()\nf(1)"
    text = after("remove_unexecuted", program, "f(1)", trace=Trace(frozenset({1, 2, 3, 6, 7, 10}), (), ()))
    assert text == "def f(x):\n    a()\n    c()\nf(1)"


def test_a_value_is_cut_out_with_what_made_it() -> None:
    program = "import torch\nimport loader\nbatch = loader.load()\nh = encode(batch)\nkeep(h)"
    value = Value(line=4, function="<module>", name="h", text="torch.randn(2, 3)", exact=False)
    text = after("replace_by_value", program, "keep", trace=Trace(frozenset(), (), (value,)))
    assert text == "import torch\nh = torch.randn(2, 3)\nkeep(h)"


def test_what_a_shape_was_unpacked_to_is_written_out() -> None:
    program = "def f(x):\n    rows, width = x.shape\n    keep(x.view(rows, width), rows)\nf(y)"
    values = (Value(2, "f", "rows", "2", True), Value(2, "f", "width", "3", True))
    text = after("replace_by_value", program, "keep", trace=Trace(frozenset(), (), values))
    assert text == "def f(x):\n    keep(x.view(2, 3), 2)\nf(y)"


def test_descent_takes_along_what_was_done_to_what_a_closure_reads() -> None:
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
    text = after("isolate_call", program, "register_hook", "compile", trace=Trace(frozenset(), calls, values))
    assert "Watch(model).detach()\n\ndef step(x):" in text
    assert "model = torch.nn.Linear(3, 2)" in text
    assert "unrelated" not in text
    assert "train" not in text


def test_descent_asks_about_one_call_on_rebuilt_inputs() -> None:
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
    text = after("isolate_call", program, "@", "compile", trace=Trace(frozenset(), calls, ()))
    assert "torch.compile(inner)(torch.randn(3, 3), torch.randn(3, 3))" in text
    assert "outer" not in text
    assert "torch.set_default_dtype(torch.float64)" in text
    assert "torch._dynamo.config.capture_scalar_outputs = True" in text


def test_descent_catches_what_the_call_raises() -> None:
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
    text = after("isolate_call", program, "except RuntimeError", "celu_", trace=Trace(frozenset(), calls, ()))
    assert text.endswith("try:\n    torch.compile(check)(torch.ones(2), 0.0)\nexcept RuntimeError:\n    pass")


def test_a_closure_stays_one_with_the_classes_it_makes() -> None:
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
    text = after("isolate_call", program, "return step", "compile", trace=Trace(frozenset(), calls, values))
    assert "def make2():\n    size = 1\n    chosen = {1: size}[size]\n    log = []\n\n    class Event:" in text
    assert "torch.compile(make2())(torch.ones(2))" in text


def test_a_setting_that_reads_a_local_name_is_not_taken_along() -> None:
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
    text = after("isolate_call", program, "* 2", "compile", trace=Trace(frozenset(), calls, ()))
    assert "set_rng_state" not in text
    assert "set_default_dtype" in text


def test_descent_puts_an_operation_beside_what_has_none() -> None:
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
    text = after("isolate_call", program, "isub", "compile", trace=Trace(frozenset(), calls, ()))
    assert "def beside(x2, arg0):\n    return (pick(arg0), x2 + 1)" in text
    assert "torch.compile(beside)(torch.ones(1), [1, 2])" in text


def test_what_a_decorator_registers_is_used_while_the_registry_is_read() -> None:
    program = """
REGISTRY = {}
def register(name):
    def wrap(function):
        REGISTRY[name] = function
        return function
    return wrap
def timed(function):
    return function
@register('a')
def first(x):
    return x
@timed
def second(x):
    return x
"""
    assert after("remove_unused", program + "keep(REGISTRY['a'])", "keep").count("def first") == 1
    assert "second" not in after("remove_unused", program + "keep(REGISTRY['a'])", "keep")
    assert after("remove_unused", program + "keep()", "keep") == "keep()"


def test_a_function_ends_at_the_statement_that_shows_it() -> None:
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
    text = after("truncate_functions", program, "keep", "change")
    assert text == "def f(x):\n    a = x + 1\n    b = culprit(a)\n    change(b, a)\n    return (b, b)\nkeep(f(y))"


def test_descent_takes_a_closure_out_with_what_it_reads() -> None:
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
    text = after("isolate_call", program, "* 2", "compile", trace=Trace(frozenset(), calls, values))
    assert "dropped = {'a'}\n\ndef helper(x):\n    return x + len(dropped)\n\ndef step(x):" in text
    assert "torch.compile(step)(torch.ones(2))" in text
    assert "make" not in text


@pytest.mark.parametrize(
    ("program", "missing"),
    [
        ("x = y", {"y"}),
        ("def f():\n    return y\ny = 1\nf()", set()),
        ("for i in range(3):\n    if i:\n        print(last)\n    last = i", set()),
        ("print(x)\nx = 1", {"x"}),
        ("def f():\n    print(x)\n    x = 1", {"x"}),
        ("[a for a in b if (c := a)]\nc", {"b"}),
        ("fs = [lambda: a for a in range(3)]", set()),
        ("class A:\n    n = 1\n    def f(self):\n        return n", {"n"}),
        ("def f():\n    n = 1\n    def g():\n        nonlocal n\n        n += 1", set()),
        ("try:\n    pass\nexcept E as e:\n    e", {"E"}),
        ("match x:\n    case [a, *b, {'k': c, **d}]:\n        a, b, c, d", {"x"}),
        ("from m import *\nx", set()),
        ("x += 1", {"x"}),
        ("import a.b as c, d.e\na, c, d", {"a"}),
    ],
)
def test_names_that_nothing_can_have_bound(program: str, missing: set[str]) -> None:
    assert unbound_names(parse(program)) == missing


@pytest.mark.parametrize(
    ("program", "fault"),
    [
        ("torch.compile(f)(torch.randn(0))", "empty"),
        ("torch.compile(f)(torch.tensor([]))", "empty"),
        ("torch.compile(f)(torch.ones())", "empty"),
        ("torch.compile(f)(torch.randn)", "callable"),
        ("torch.compile\ndef f(x):\n    return x\nf(1, 2)", "arity"),
        ("torch.compile\ndef f(x):\n    x + 1\ny = f(1)", "no value"),
        ("torch.compile\nclass A(Module):\n    def forward(self, x):\n        return self.w", "no attribute w"),
        ("@torch.compile\ndef f(x):\n    x + 1\ny = f(1)", "no value"),
        ("def f(x):\n    x + 1\ntorch.compile(f, backend='eager')(1).sum()", "no value"),
        ("@torch.compile\ndef f(x):\n    return x\nf(1, 2)", "arity"),
        ("@torch.compile\ndef f(x):\n    return x\ng(1)", "compiled in vain"),
        ("def f(x):\n    return x\ng = torch.compile(f)\nf(1)", "compiled in vain"),
        ("def f(x):\n    return x\ntorch.compile(f)\nf(1)", "compiled in vain"),
        (
            "def train():\n    g = torch.compile(f)\n    return g(1)\nprint(torch._dynamo.config.verbose)",
            "compiled in vain",
        ),
        (_FUNCTION.format("return g"), "gradients 0"),
        (_FUNCTION.format("return g,"), "gradients"),
        (_FUNCTION.format("pass"), "silent backward"),
        ("torch.compile\nclass A(Module):\n    def __init__(self):\n        self.w = 1", "no super"),
        ("f(x)", "no compile"),
    ],
)
def test_a_faulty_candidate_is_never_asked_about(program: str, fault: str) -> None:
    name, _, number = fault.rpartition(" ")
    assert count_defects(parse(program))[name if number == "0" else fault] == (number != "0")


@pytest.mark.parametrize(
    "program",
    [
        "def main():\n    g = torch.compile(f)\n    g(1)\nmain()",
        "@torch.compile\ndef f(x):\n    return x\nprint([f][0](1))",
        "@register\ndef main():\n    torch.compile(f)(1)",
        "class A:\n    def go(self):\n        return torch.compile(self.f)(1)\nA().go()",
        "class A:\n    @torch.compile\n    def go(self):\n        return 1\ngetattr(A(), 'go')()",
        "self.g = torch.compile(f)\nself.g(1)",
        "def fast(f):\n    return torch.compile(f)\n@fast\ndef f(x):\n    return x\nf(1)",
        "model.compile()\nmodel(1)",
    ],
)
def test_what_may_be_called_is_not_compiled_in_vain(program: str) -> None:
    assert not compiles_but_never_calls(parse(program), TorchNames.of(parse(program)))


@pytest.mark.parametrize(
    ("value", "acts"),
    [
        ("torch.ones(2) + math.sqrt(x.view(2).sum())", False),
        ("[len(a) for a in b]", False),
        ("nn.Linear(2, 3)", False),
        ("Config()", True),
        ("model.attach()", True),
        ("x.add_(1)", True),
        ("torch.manual_seed(1)", True),
        ("layer.register_forward_hook(f)", True),
        ("own.method()", True),
        ("(y := 1)", True),
        ("print(x)", True),
    ],
)
def test_what_making_a_value_may_do_beside_it(value: str, acts: bool) -> None:
    assert may_have_side_effects(expression(value), {"torch", "math", "nn"}, {"method"}) is acts


def test_a_value_that_is_cut_out_of_a_function_is_not_drawn_there() -> None:
    program = "import torch\ndef f(x):\n    h = g(g(x, 1), g(3, 4))\n    keep(h)\nh = g(g(1), g(2))\nf(h)"
    values = (Value(3, "f", "h", "torch.randn(2, 3)", False), Value(5, "<module>", "h", "torch.randn(2)", False))
    text = after("replace_by_value", program, "keep", trace=Trace(frozenset(), (), values))
    assert "    h = torch.ones(2, 3)\n" in text
    assert "\nh = torch.randn(2)" in text


def test_wins_in_a_row_go_together() -> None:
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


def test_forms_that_are_no_faults() -> None:
    program = "torch.compile(f)(torch.zeros(()), torch.full((2,), 0), torch.arange(0, 4), torch.randint(0, 9, (3,)))"
    assert not count_defects(parse(program))


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


def test_a_trace_is_taken_of_what_is_asked_about() -> None:
    traced: list[str] = []

    def trace(text: str) -> Trace | None:
        traced.append(text)
        return Trace(frozenset(range(1, 99)), (), ())

    minimize("a = 1\nb = 2\nkeep(a)\n", having("keep"), trace=trace)
    assert traced
    for text in traced:
        assert "keep" in text
        assert text.endswith("\n")
        assert text_of(ast.parse(text))


def test_a_layer_gives_way_to_an_input_that_takes_gradients() -> None:
    program = (
        "import torch\n\nlayer = torch.nn.Linear(1, 1)\n\n@torch.compile\ndef f(y):\n    z = torch.tensor([1.0])\n"
        "    z[:] = layer(y)\n    return z.requires_grad\n\nassert f(torch.ones(1))\n"
    )

    def ask(source: str) -> Verdict:
        layer = "torch.nn.Linear(1, 1)\n" in source and re.search(r"\[:\] = \w+\(\w+\)", source)
        kept = all(
            part in source for part in ("compile", "tensor([1.0])", "[:] = ", "return", ".requires_grad\n", "assert f(")
        )
        shows = kept and "ones(1" in source and (layer or "ones(1, requires_grad=True)" in source)
        return Verdict(Answer.SAME if shows else Answer.NONE)

    found = minimize(program, ask).source
    assert "Linear" not in found
    assert "requires_grad=True" in found
