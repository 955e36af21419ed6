"""Scripts that stand alone, judged by running them: a compiler that is known to be wrong stands in for torch's."""

from __future__ import annotations

import ast
import os
import runpy
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchbisect.core.verdict import MismatchKind
from torchbisect.minimizer.standalone.assertions import standalone_candidates, with_comment
from torchbisect.minimizer.standalone.named_inputs import with_named_inputs
from torchbisect.minimizer.syntax.backend import with_backend


@dataclass(frozen=True)
class Seen:
    """A mismatch as the probe tells it."""

    kind: MismatchKind
    place: str = "call 0 output"
    attribute: str = "value"
    eager: str = ""
    compiled: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)


TWICE_THE_GRADIENT = "lambda f: lambda *a: (lambda y: y + y - y.detach())(f(*a))"

# Each with what ``torch.compile`` has to be for the bug to be there; without the bug it gives the function back.
CASES = {
    "a flag of the output": (
        "import torch\n\ndef f(x):\n    return x * 2\ntorch.compile(f)(torch.ones(1, requires_grad=True))\n",
        Seen(MismatchKind.METADATA, attribute="requires_grad", eager="True", compiled="False"),
        "lambda f: lambda *a: f(*a).detach()",
    ),
    "a dtype": (
        "import torch\n\ndef f(x):\n    return x * 2\ntorch.compile(f)(torch.ones(1))\n",
        Seen(MismatchKind.METADATA, attribute="dtype", eager="torch.float32", compiled="torch.float64"),
        "lambda f: lambda *a: f(*a).double()",
    ),
    "a value that is no number in eager": (
        "import torch\n\n@torch.compile\ndef f(x):\n    return x * 0\nx = torch.ones(2)\nx[1] = float('inf')\nf(x)\n",
        Seen(MismatchKind.VALUES, eager="nan", compiled="0"),
        "lambda f: lambda *a: f(*a).nan_to_num()",
    ),
    "an input with gaps that is changed": (
        "import torch\n\ndef f(x):\n    x.add_(1)\nx = torch.zeros(4, 6)[:, ::2]\ntorch.compile(f)(x)\n",
        Seen(MismatchKind.SIDE_EFFECTS, place="call 0 argument[0]", eager="1", compiled="0"),
        "lambda f: lambda x: None if x.stride(1) == 2 else f(x)",
    ),
    "a list in a closure that nothing else holds": (
        "import torch\n\ndef make():\n    x = []\n    def g(y):\n        x.append(y)\n    return g\n"
        "torch.compile(make())(torch.ones(1))\n",
        Seen(MismatchKind.SIDE_EFFECTS, place="call 0 closure x", attribute="length", eager="1", compiled="0"),
        "lambda f: lambda *a: None",
    ),
    "what a method counts in an object without a name": (
        "import torch\n\nclass A:\n    def __init__(self):\n        self.n = 0\n"
        "    def step(self, x):\n        self.n += 1\n"
        "torch.compile(A().step)(torch.ones(1))\n",
        Seen(MismatchKind.SIDE_EFFECTS, place="call 0 self.n", attribute="value", eager="1", compiled="0"),
        "lambda f: lambda *a: None",
    ),
    "what an object without a name counts, which is passed": (
        "import torch\n\nclass State:\n    n = 0\n\n"
        "class Device:\n    def __init__(self):\n        self.state = State()\n\n"
        "@torch.compile\ndef f(device):\n    device.state.n += 1\nf(Device())\n",
        Seen(MismatchKind.SIDE_EFFECTS, place="call 0 argument device.state.n", eager="1", compiled="0"),
        "lambda f: lambda *a: None",
    ),
    "what a dictionary without a name holds, which is passed": (
        "import torch\n\ndef f(x, d):\n    d['a'] = 1\ntorch.compile(f)(torch.ones(1), {'a': 0})\n",
        Seen(MismatchKind.SIDE_EFFECTS, place="call 0 argument[1]['a']", eager="1", compiled="0"),
        "lambda f: lambda *a: None",
    ),
    "a list in a closure of a method": (
        "import torch\n\ndef make():\n    x = []\n    class A:\n        def add(self):\n            x.append(1)\n"
        "    torch.compile(lambda y: A().add())(torch.ones(1))\nmake()\n",
        Seen(MismatchKind.SIDE_EFFECTS, place="call 0 closure x", attribute="length", eager="1", compiled="0"),
        "lambda f: lambda *a: None",
    ),
    "a list in a closure of a class that a compiled function makes": (
        "import torch\n\ndef make():\n    x = []\n    class A:\n        def __init__(self):\n            x.append(1)\n"
        "    return A\n\n@torch.compile\ndef f(y):\n    made()\n\nmade = make()\nf(torch.ones(1))\n",
        Seen(MismatchKind.SIDE_EFFECTS, place="call 0 closure x", attribute="length", eager="1", compiled="0"),
        "lambda f: lambda *a: None",
    ),
    "a number in a closure of a method whose object has a name": (
        "import torch\n\ndef make():\n    x = {'n': 0}\n    class A:\n        def add(self, y):\n"
        "            x['n'] += 1\n    return A()\n\na = make()\ntorch.compile(a.add)(torch.ones(1))\n",
        Seen(MismatchKind.SIDE_EFFECTS, place="call 0 closure x['n']", eager="1", compiled="0"),
        "lambda f: lambda *a: None",
    ),
    "a number of a class": (
        "import torch\n\nclass A:\n    n = 0\n\n@torch.compile\ndef f(y):\n    A.n += 1\n\nf(torch.ones(1))\n",
        Seen(MismatchKind.SIDE_EFFECTS, place="call 0 global A.n", eager="1", compiled="0"),
        "lambda f: lambda *a: None",
    ),
    "a number in an object of a module": (
        "import torch\n\nclass A:\n    n = 0\n\nclass Net(torch.nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.a = A()\n    def forward(self, y):\n        self.a.n += 1\n\n"
        "torch.compile(Net())(torch.ones(1))\n",
        Seen(MismatchKind.SIDE_EFFECTS, place="call 0 self.a.n", eager="1", compiled="0"),
        "lambda f: lambda *a: None",
    ),
    "a decorated function's value": (
        "import torch\n\n@torch.compile\ndef f(x):\n    return x * 2\nf(torch.ones(3))\n",
        Seen(MismatchKind.VALUES, eager="2", compiled="3"),
        "lambda f: lambda *a: f(*a) + 1",
    ),
    "a value with more digits than are shown": (
        "import random\nimport torch\n\nx = random.Random(1)\n"
        "@torch.compile\ndef f(y):\n    return y * x.uniform(1, 2)\n"
        "f(torch.ones(1))\nf(torch.ones(1))\n",
        Seen(MismatchKind.VALUES, place="call 1 output", eager="1.84743", compiled="1.13436"),
        "lambda f: lambda *a: torch.tensor([1.13436])",
    ),
    "an element of a gradient": (
        "import torch\n\n@torch.compile\ndef f(x, y):\n    return x * y\n"
        "f(torch.ones(1, 2, requires_grad=True), torch.ones(2)).sum().backward()\n",
        Seen(MismatchKind.GRADIENTS, "backward 0 argument x.grad", "value", "1", "2", {"index": [0, 1], "numel": 2}),
        TWICE_THE_GRADIENT,
    ),
    "a gradient without a graph": (
        "import torch\n\n@torch.compile\ndef f(x):\n    return x.sigmoid()\nx = torch.ones(1, requires_grad=True)\n"
        "torch.autograd.grad(f(x), x, create_graph=True)\n",
        Seen(MismatchKind.GRADIENTS, "backward 2 gradient[0]", "requires_grad", eager="True", compiled="False"),
        "lambda f: lambda x: f(x).detach() + x",
    ),
    "a plain value inside": (
        "import torch\n\n@torch.compile\ndef f(x):\n    return [len({1})], x\nf(torch.ones(3))\n",
        Seen(MismatchKind.VALUES, place="call 0 output[0][0]", eager="1", compiled="2"),
        "lambda f: lambda *a: ([2], *a)",
    ),
    "a list that is one short": (
        "import torch\n\ndef f(x, w):\n    w.append(x)\nx, w = torch.ones(2), []\ntorch.compile(f)(x, w)\n",
        Seen(MismatchKind.SIDE_EFFECTS, place="global w", attribute="length", eager="1", compiled="0"),
        "lambda f: lambda *a: None",
    ),
    "a key that is missing": (
        "import torch\n\ndef f(x):\n    return {'a': x, 'b': x}\ntorch.compile(f)(torch.ones(2))\n",
        Seen(MismatchKind.METADATA, attribute="keys", eager="['a', 'b']", compiled="['a']"),
        "lambda f: lambda x: {'a': x}",
    ),
    "another type": (
        "import torch\n\ndef f(x):\n    return [x]\ntorch.compile(f)(torch.ones(2))\n",
        Seen(MismatchKind.METADATA, attribute="type", eager="list", compiled="tuple"),
        "lambda f: lambda x: (x,)",
    ),
    "a line that is not printed": (
        "import torch\n\ndef f(x):\n    print('called')\ntorch.compile(f)(torch.ones(2))\n",
        Seen(MismatchKind.SIDE_EFFECTS, place="printed line 0", attribute="output", eager="called"),
        "lambda f: lambda *a: None",
    ),
    "the second call of what was compiled under a name": (
        "import torch\n\nx = torch.nn.Linear(2, 2)\ny = torch.compile(x)\nz = torch.ones(2)\ny(z)\ny(z)\n",
        Seen(MismatchKind.VALUES, place="call 1 output", eager="100.102", compiled="0.101684"),
        "lambda f: lambda *a: f(*a) + 1",
    ),
    "the second call of a decorated function, with values by chance": (
        "import torch\n\ndef hook(m, a, y):\n    return y + 1\n\n@torch.compile(backend='eager')\ndef g():\n"
        "    return w[0](torch.ones(1))\n\nw = [torch.nn.Linear(1, 1)]\ng()\nw[0].register_forward_hook(hook)\ng()\n",
        Seen(MismatchKind.VALUES, place="call 1 output", eager="1.52896", compiled="0.528957"),
        "lambda f=None, **o: lambda *a: f(*a) - 1",
    ),
    "a changed argument": (
        "import torch\n\ndef f(x):\n    x.add_(1)\nx = torch.ones(2)\ntorch.compile(f)(x)\n",
        Seen(MismatchKind.MUTATION, place="call 0 argument x", eager="2", compiled="1"),
        "lambda f: lambda *a: None",
    ),
    "a gradient that is missing": (
        "import torch\n\ndef f(x):\n    return x * 2\n"
        "x = torch.ones(1, requires_grad=True)\ntorch.compile(f)(x).backward()\n",
        Seen(MismatchKind.GRADIENTS, place="backward 0 argument x.grad", eager="a tensor", compiled="None"),
        "lambda f: lambda *a: (f(*a) + a[0]).detach().requires_grad_()",
    ),
    "a gradient of a tensor without a name": (
        "import torch\n\n@torch.compile(backend='eager')\ndef f(y):\n    q = y * 1\n    return q\n"
        "f(torch.ones(1, requires_grad=True)).backward()\n",
        Seen(MismatchKind.GRADIENTS, place="backward 0 call 0 argument 0.grad", eager="1", compiled="2"),
        TWICE_THE_GRADIENT,
    ),
    "gradients of several elements": (
        "import torch\n\n@torch.compile\ndef f(x):\n    return x * torch.arange(4.0)\n"
        "x = torch.ones(4, requires_grad=True)\nf(x).sum().backward()\n",
        Seen(MismatchKind.GRADIENTS, place="backward 0 x.grad", eager="3", compiled="6"),
        TWICE_THE_GRADIENT,
    ),
    "several elements that torch.autograd.grad gave": (
        "import torch\n\ndef f(x):\n    return x * torch.arange(4.0)\n"
        "x = torch.ones(4, requires_grad=True)\ntorch.autograd.grad(torch.compile(f)(x).sum(), x)\n",
        Seen(MismatchKind.GRADIENTS, place="backward 0 gradient[0]", eager="3", compiled="6"),
        TWICE_THE_GRADIENT,
    ),
    "a parameter's gradient": (
        "import torch\n\ny = torch.nn.Sequential(torch.nn.Linear(2, 2))\nz = torch.compile(y)\n"
        "z(torch.ones(2)).sum().backward()\n",
        Seen(MismatchKind.GRADIENTS, place="backward 0 self.0.weight.grad", eager="1", compiled="2"),
        TWICE_THE_GRADIENT,
    ),
    "a changed argument without a name": (
        "import torch\n\ndef f(x):\n    x.add_(1)\ntorch.compile(f)(torch.ones(2))\n",
        Seen(MismatchKind.MUTATION, place="call 0 argument 0", eager="2", compiled="1"),
        "lambda f: lambda *a: None",
    ),
    "a changed argument in a list": (
        "import torch\n\ndef f(x):\n    x[0].add_(1)\ntorch.compile(f)([torch.ones(1)])\n",
        Seen(MismatchKind.MUTATION, place="call 0 argument 0[0]", eager="2", compiled="1"),
        "lambda f: lambda *a: None",
    ),
    "an error that is missing": (
        "import torch\n\ndef f(x):\n    return x.view(7)\ntorch.compile(f)(torch.ones(2))\n",
        Seen(MismatchKind.MISSING_RAISE, eager="RuntimeError", compiled="returned"),
        "lambda f: lambda *a: None",
    ),
    "an error that only eager raises, and the script catches": (
        "import torch\n\ndef f(x):\n    return x.view(7)\n"
        "try:\n    torch.compile(f)(torch.ones(2))\nexcept RuntimeError:\n    pass\n",
        Seen(MismatchKind.MISSING_RAISE, eager="raises RuntimeError: shape", compiled="returns"),
        "lambda f: lambda *a: None",
    ),
    "an error that only eager raises, and a function of the script catches": (
        "import torch\n\ndef f(x):\n    return x.view(7)\n\ndef g(x):\n    try:\n        return torch.compile(f)(x)\n"
        "    except RuntimeError:\n        return None\ng(torch.ones(2))\n",
        Seen(MismatchKind.MISSING_RAISE, eager="raises RuntimeError: shape", compiled="returns"),
        "lambda f: lambda *a: None",
    ),
    "an error that only compiled code raises, and the script catches": (
        "import torch\n\ndef f(x):\n    return x\n"
        "try:\n    torch.compile(f)(torch.ones(2))\nexcept Exception:\n    pass\n",
        Seen(MismatchKind.RAISES, eager="returns", compiled="raises KeyError: 'x'"),
        "lambda f: lambda *a: {}['x']",
    ),
    "another error than in eager": (
        "import torch\n\ndef f(x):\n    return x[5]\ntorch.compile(f)(torch.ones(2))\n",
        Seen(MismatchKind.RAISES_DIFFERENTLY, eager="raises IndexError: index 5", compiled="raises KeyError: 'x'"),
        "lambda f: lambda *a: {}['x']",
    ),
    "an error of a derived class": (
        "import torch\n\ndef f(x):\n    return {}[x] if len(x) else x[5]\ntorch.compile(f)(torch.ones(2))\n",
        Seen(MismatchKind.RAISES_DIFFERENTLY, eager="raises KeyError: 'x'", compiled="raises LookupErrorInGraph"),
        "lambda f: lambda *a: exec('class LookupErrorInGraph(KeyError): pass\\nraise LookupErrorInGraph')",
    ),
    "another error than in eager, and the script catches both": (
        "import torch\n\ndef f(x):\n    return x[5]\n"
        "try:\n    torch.compile(f)(torch.ones(2))\nexcept Exception:\n    pass\n",
        Seen(MismatchKind.RAISES_DIFFERENTLY, eager="raises IndexError: index 5", compiled="raises KeyError: 'x'"),
        "lambda f: lambda *a: {}['x']",
    ),
    "a crash where eager raises": (
        "import torch\n\ndef f(x):\n    return x[5]\ntorch.compile(f)(torch.ones(2))\n",
        Seen(MismatchKind.CRASH, eager="raises IndexError: index 5", compiled="is ended by SIGKILL"),
        "lambda f: lambda *a: os.kill(os.getpid(), 9)",
    ),
    "a changed view without a name": (
        "import torch\n\ndef f(x):\n    x.add_(1)\ntorch.compile(f)(torch.zeros(4, 6)[:, ::2])\n",
        Seen(MismatchKind.MUTATION, place="call 0 argument 0", eager="1", compiled="0"),
        "lambda f: lambda x: None if x.stride(1) == 2 else f(x)",
    ),
    "a global": (
        "import torch\nseen = []\n\ndef f(x):\n    seen.append(1)\ntorch.compile(f)(torch.ones(2))\n",
        Seen(MismatchKind.SIDE_EFFECTS, place="global seen", eager="[1]", compiled="[]"),
        "lambda f: lambda *a: None",
    ),
}


def ends(text: str, compiler: str, folder: Path) -> int:
    """The exit status of a script under a ``torch.compile`` of our own making, in a process of its own."""
    torch = pytest.importorskip("torch")
    script = folder / "minimal.py"
    script.write_text(text)
    child = os.fork()
    if child == 0:
        # Forked, so that torch is imported once for all the scripts.
        status = 1
        try:
            wrong = eval(compiler)
            torch.compile = lambda f=None, **options: wrong(f) if f is not None else wrong
            runpy.run_path(str(script), run_name="__main__")
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.torch
@pytest.mark.parametrize("name", CASES)
def test_one_of_the_candidates_fails_with_the_bug_and_passes_without(name: str, tmp_path: Path) -> None:
    source, seen, wrong = CASES[name]
    for text in standalone_candidates(source, seen):
        if ends(text, "lambda f: f", tmp_path) == 0 and ends(text, wrong, tmp_path) != 0:
            return
    pytest.fail("none stands alone:\n" + "\n---\n".join(standalone_candidates(source, seen)))


def test_the_element_that_differs_is_asserted_before_results_are_compared() -> None:
    source, seen, _ = CASES["an element of a gradient"]
    texts = [text for text in standalone_candidates(source, seen) if "assert " in text and ".grad" in text]
    assert texts[0].endswith("(z, torch.ones(2)).sum().backward()\nassert z.grad[0, 1] == 1  # eager: 1, compiled: 2\n")


@pytest.mark.torch
@pytest.mark.parametrize(
    "source",
    ["x = torch.ones(1)\ntorch.compile(f)(x)\n", "x = torch.ones(1)\ny = torch.compile(f)(x)\n"],
)
def test_no_assertion_about_a_shape_fails_for_another_dtype(source: str, tmp_path: Path) -> None:
    program = f"import torch\n\ndef f(x):\n    return x * 2\n{source}"
    seen = Seen(MismatchKind.METADATA, attribute="shape", eager="torch.Size([1])", compiled="torch.Size([0])")
    texts = [text for text in standalone_candidates(program, seen) if ends(text, "lambda f: f", tmp_path) == 0]
    assert any(ends(text, "lambda f: lambda *a: f(*a)[:0]", tmp_path) for text in texts)
    for text in texts:
        assert ends(text, "lambda f: lambda *a: f(*a).double()", tmp_path) == 0, text


@pytest.mark.torch
def test_a_last_call_is_compared_with_eager_however_it_was_compiled(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    source = "import torch\n\nm = torch.nn.Linear(1, 1)\nm.compile(backend='eager')\nx = torch.rand(1)\nm(x)\n"
    texts = standalone_candidates(source, Seen(MismatchKind.VALUES, eager="1.5", compiled="0.5"))
    (forced,) = [text for text in texts if "set_stance" in text]
    assert ends(forced, "torch.compile", tmp_path) == 0
    assert ends(forced.replace("eager = m(x)", "eager = m(x) + 1"), "torch.compile", tmp_path) != 0


def test_what_raises_stands_as_it_is() -> None:
    assert standalone_candidates("import torch\nf()\n", Seen(MismatchKind.RAISES)) == ["import torch\nf()\n"]


def test_the_first_is_the_script_itself() -> None:
    source, seen, _ = CASES["a dtype"]
    assert standalone_candidates(source, seen)[0] == source


@given(
    st.text(max_size=30),
    st.text(max_size=30),
    st.sampled_from(["x = 1\n", "x = (1,\n     2)\n", "def f():\n    pass\n"]),
)
def test_a_comment_never_changes_the_script(eager: str, compiled: str, source: str) -> None:
    assert ast.dump(ast.parse(with_comment(source, eager, compiled))) == ast.dump(ast.parse(source))


def test_a_comment_says_what_differs() -> None:
    assert with_comment("assert x\n", "True", "False") == "assert x  # eager: True, compiled: False\n"


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ("f = torch.compile(g)", "f = torch.compile(g, backend='eager')"),
        ("f = torch.compile(g, mode='max', dynamic=True)", "f = torch.compile(g, dynamic=True, backend='eager')"),
        ("@torch.compile\ndef f():\n    return 1", "@torch.compile(backend='eager')\ndef f():\n    return 1"),
        ("@torch.compile()\ndef f():\n    return 1", "@torch.compile(backend='eager')\ndef f():\n    return 1"),
        ("from torch import compile as c\nf = c(g)", "from torch import compile as c\nf = c(g, backend='eager')"),
        ("model.compile()", "model.compile(backend='eager')"),
        ("'Help.'\nprint(__doc__)\nmodel.compile()", "print('Help.')\nmodel.compile(backend='eager')"),
        (
            "import torch as t\ndef compile(b):\n    return t.compile(g, backend=b)\ntrainer.compile('x')",
            "import torch as t\n\ndef compile(b):\n    return t.compile(g, backend='eager')\ntrainer.compile('x')",
        ),
    ],
)  # fmt: skip
def test_every_call_names_the_backend(source: str, named: str) -> None:
    assert with_backend(source, "eager") == named + "\n"


@pytest.mark.parametrize("source", ["re.compile('x')", "compile('x', 'y', 'exec')", "x = 1"])
def test_what_compiles_nothing_of_torch_is_left_alone(source: str) -> None:
    assert with_backend(source, "eager") is None


def test_no_gradient_is_asserted_where_another_thing_differs() -> None:
    source = "import torch\nx = torch.ones(2, requires_grad=True)\ntorch.compile(f)(x).sum().backward()\n"
    assert any(
        ".grad" in text
        for text in standalone_candidates(source, Seen(MismatchKind.GRADIENTS, place="backward 0 x.grad"))
    )
    assert not any(
        ".grad" in text for text in standalone_candidates(source, Seen(MismatchKind.VALUES, place="call 0 output"))
    )


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ("f(torch.ones(1, requires_grad=True)).backward()", "x = torch.ones(1, requires_grad=True)\nf(x).backward()"),
        ("y = f(x, [torch.ones(1)], k=torch.eye(2))", "z = torch.ones(1)\nw = torch.eye(2)\ny = f(x, [z], k=w)"),
        (
            "torch.compile(f)(torch.nn.Parameter(torch.ones(1)))",
            "x = torch.nn.Parameter(torch.ones(1))\ntorch.compile(f)(x)",
        ),
        ("x = torch.ones(1, requires_grad=True)", "x = torch.ones(1, requires_grad=True)"),
        (
            "f(lambda: torch.ones(1), [torch.ones(n) for n in y])",
            "f(lambda: torch.ones(1), [torch.ones(n) for n in y])",
        ),
        ("torch.cat([torch.ones(1)])", "torch.cat([torch.ones(1)])"),
        ("f(torch.compile(g))", "f(torch.compile(g))"),
    ],
)
def test_what_is_made_in_passing_gets_a_name(source: str, named: str) -> None:
    assert ast.unparse(with_named_inputs(ast.parse(source))) == named
