"""Differences that two correct runs can have are removed, and real differences beside them are kept."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from torchbisect.core.repro import Repro
from torchbisect.core.verdict import MismatchKind
from torchbisect.probe.agent_client import Agent
from torchbisect.probe.judge.classify import find_untestable
from torchbisect.probe.judge.observation import Observation

pytestmark = pytest.mark.torch

# A backend that returns the hole: another of the equal elements, or an element that is not among them.
TIES = {
    "the largest of all": (
        "def bad(gm, inputs):\n    return lambda x: (torch.tensor({hole}),)\n"
        "f = torch.compile(lambda x: x.argmax(), backend=bad)\nf(torch.tensor([1.0, 3.0, 2.0, 3.0]))\n",
        "3",
        "2",
    ),
    "the smallest of each row": (
        "def bad(gm, inputs):\n    return lambda x: (torch.tensor({hole}),)\n"
        "f = torch.compile(lambda x: x.argmin(1), backend=bad)\nf(torch.tensor([[1, 1, 2], [4, 3, 3]]))\n",
        "[1, 2]",
        "[1, 0]",
    ),
    "a maximum with its place": (
        "def bad(gm, inputs):\n    return lambda x: (x.amax(0), torch.tensor({hole}))\n"
        "f = torch.compile(lambda x: tuple(x.max(0)), backend=bad)\nf(torch.tensor([5.0, 0.0, 5.0]))\n",
        "2",
        "1",
    ),
    "the two largest": (
        "def bad(gm, inputs):\n    return lambda x: (torch.tensor({hole}),)\n"
        "f = torch.compile(lambda x: x.topk(2)[1].sort()[0], backend=bad)\nf(torch.tensor([5.0, 0.0, 5.0, 5.0]))\n",
        "[2, 3]",
        "[1, 3]",
    ),
    "a gradient that goes to one of them": (
        "class Last(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, x):\n        return x.amax()\n"
        "    @staticmethod\n    def backward(ctx, g):\n        return g * torch.tensor({hole})\n"
        "def bad(gm, inputs):\n    return lambda x: (Last.apply(x),)\n"
        "x = torch.tensor([2.0, 0.0, 2.0], requires_grad=True)\n"
        "torch.compile(lambda x: x.max(0)[0], backend=bad)(x).backward()\n",
        "[0.0, 0.0, 1.0]",
        "[0.0, 1.0, 0.0]",
    ),
}


@pytest.mark.parametrize("name", TIES)
def test_another_choice_among_equal_elements_is_no_mismatch(observe: Callable[..., Observation], name: str) -> None:
    script, right, wrong = TIES[name]
    assert observe(script.replace("{hole}", right)).differences == ()
    assert observe(script.replace("{hole}", wrong)).differences


# The function draws twice. The hole is the code that a backend makes of it.
DRAWS = """
def bad(gm, inputs):
    def run(*given):
        {hole}
    return run
@torch.compile(backend=bad)
def f(x):
    first = torch.rand(3)
    return x + first, x + torch.randn(3)
same = f(torch.zeros(3))
{more}
"""


@pytest.mark.parametrize(
    "hole",
    [
        "torch.rand(1); return gm(*given)",
        "second = torch.randn(3); return torch.rand(3) + given[0], second + given[0]",
    ],
)
@pytest.mark.parametrize("more", ["", "print(same[1])", "assert same[0].sum().item() == f(x)[0].sum().item()"])
def test_a_different_order_of_draws_is_no_evidence(observe: Callable[..., Observation], hole: str, more: str) -> None:
    more = more.replace("f(x)", "(torch.manual_seed(0), torch.rand(3))[1:]") if "assert" in more else more
    seen = observe("torch.manual_seed(0)\n" + DRAWS.replace("{hole}", hole).replace("{more}", more))
    assert (seen.differences, seen.drawn) == ((), True)
    trouble = find_untestable(seen)
    assert trouble is not None
    assert trouble.reason == "random-numbers"


def test_a_difference_beside_the_order_of_draws_is_evidence(observe: Callable[..., Observation]) -> None:
    hole = "second = torch.randn(3); return torch.rand(3) + given[0] + 1, second + given[0]"
    seen = observe(DRAWS.replace("{hole}", hole).replace("{more}", ""))
    assert {item.place for item in seen.differences} == {"call 0 output[0]", "global same[0]"}
    assert find_untestable(seen) is None


# Each script prints, or keeps in a global, something that differs between any two runs. Its compiled call is right or
# wrong by the hole.
VARYING = {
    "fresh memory": "f = torch.compile(lambda x: x + {hole}, backend='eager')\n"
    "waste = torch.empty(5000)\nprint(waste.sum())\nsame = f(torch.ones(2))\n",
    "the clock": "import time\nf = torch.compile(lambda x: x + {hole}, backend='eager')\nbegan = time.time()\n"
    "same = f(torch.ones(2))\nprint(f'{time.time() - began:.6f} seconds at', time.perf_counter())\n",
    "an address": "f = torch.compile(lambda x: x + {hole}, backend='eager')\nclass Thing: pass\nthing = Thing()\n"
    "print(thing, hex(id(thing)))\nsame = f(torch.ones(2))\n",
    "the order of a set": "f = torch.compile(lambda x: x + {hole}, backend='eager')\nclass Thing: pass\n"
    "things = {Thing() for _ in range(9)}\nprint([id(t) % 97 for t in things])\nsame = f(torch.ones(2))\n",
    "a part of the address of a tensor": "f = torch.compile(lambda x: x + {hole}, backend='eager')\n"
    "same = f(torch.ones(2))\nprint(torch.ones(5).data_ptr() % 1009, torch.ones(700).data_ptr() // 64 % 1009)\n",
    "a part of the address of a mapping": "import ctypes, mmap\n"
    "f = torch.compile(lambda x: x + {hole}, backend='eager')\nsame = f(torch.ones(2))\n"
    "print(torch.ones(1 << 20).data_ptr() // 4096 % 1009)\n"
    "print(ctypes.addressof(ctypes.c_char.from_buffer(mmap.mmap(-1, 8192))) // 4096 % 1009)\n",
    "the number of modules": "import sys\nf = torch.compile(lambda x: x + {hole}, backend='inductor')\n"
    "same = f(torch.ones(2))\nprint(len(sys.modules))\n",
    "random numbers": "import random\nf = torch.compile(lambda x: x + torch.rand(3) + {hole}, backend='eager')\n"
    "print(random.SystemRandom().random())\nsame = f(torch.ones(3))\n",
}


@pytest.mark.parametrize("name", VARYING)
def test_varying_values_are_removed_and_nothing_else(observe: Callable[..., Observation], name: str) -> None:
    assert observe(VARYING[name].replace("{hole}", "1")).differences == ()
    seen = observe(VARYING[name].replace("{hole}", "(2 if torch.compiler.is_compiling() else 1)"))
    places = {item.place for item in seen.differences}
    assert places & {"call 0 output", "call 1 output", "global same", "call 1 argument x"}, seen.differences
    assert not any(place.startswith("printed") for place in places)


def test_values_that_do_not_repeat_are_no_mismatch(observe: Callable[..., Observation]) -> None:
    script = """
import random, time, uuid
f = torch.compile(lambda x: x + 1, backend="eager")
began = time.perf_counter()
out = f(torch.empty(1000) * 0 + torch.rand(1000))
waste = f(torch.empty(3000))
elapsed = time.perf_counter() - began
label = f"{elapsed:.3f} s, {object()}"
names = {object() for _ in range(3)}
print(label, waste.sum(), random.random())
"""
    assert observe(script).differences == ()


def test_times_and_names_in_globals_are_not_spoken_of(observe: Callable[..., Observation]) -> None:
    """They differ between any two runs, and no compiler has to do with them; a tensor is spoken of."""
    script = """
import tempfile, time, uuid
import torch
began, name, path = time.time(), uuid.uuid4().hex, tempfile.mkdtemp()
noise = torch.tensor(time.time_ns() % 1000003)
print(torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2)))
"""
    seen = observe(script)
    assert seen.differences == ()
    (note,) = (note for note in seen.notes if "repeat itself" in note)
    assert "global noise" in note
    assert not any(f"global {name}" in note for name in ("began", "name", "path"))


def test_repeat_reports_values_that_do_not_repeat(agent: Agent) -> None:
    seen = agent.repeat(
        Repro("import time, torch\nf = torch.compile(lambda: torch.empty(999))\nx = f()\nt = time.time()")
    )
    assert {item.place for item in seen.differences} >= {"call 0 output"}
    assert all(item.kind in (MismatchKind.VALUES, MismatchKind.SIDE_EFFECTS) for item in seen.differences)


@pytest.mark.parametrize(("body", "forced"), [("x + torch.rand(3)", True), ("torch.dropout(x, 1.0, True)", False)])
def test_inductor_draws_as_eager_does_only_where_eager_draws(
    observe: Callable[..., Observation], body: str, forced: bool
) -> None:
    """A random operation that draws nothing in eager has a decomposition of its own, which is to be compared."""
    source = f"""
f = torch.compile(lambda x: {body}, backend="eager")
f(torch.zeros(3))
flag = torch._inductor.config.fallback_random
"""
    places = [found.place for found in observe(source).differences]
    assert places == (["global flag"] if forced else [])
