"""What two right runs need not agree on is no mismatch; what only looks like it is one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from torchbisect.probe.judge.classify import trouble_of
from torchbisect.probe.judge.observation import Observation

pytestmark = pytest.mark.torch

# A backend that answers with what the hole says: another of the equal elements, or one that is not among them.
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
def test_another_of_equal_elements_is_no_mismatch(observe: Callable[..., Observation], name: str) -> None:
    script, right, wrong = TIES[name]
    assert observe(script.replace("{hole}", right)).differences == ()
    assert observe(script.replace("{hole}", wrong)).differences


# What the hole says stands in the code that a backend made of the function; the function itself draws two numbers.
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
def test_an_order_of_draws_is_no_evidence(observe: Callable[..., Observation], hole: str, more: str) -> None:
    more = more.replace("f(x)", "(torch.manual_seed(0), torch.rand(3))[1:]") if "assert" in more else more
    seen = observe("torch.manual_seed(0)\n" + DRAWS.replace("{hole}", hole).replace("{more}", more))
    assert (seen.differences, seen.drawn) == ((), True)
    trouble = trouble_of(seen)
    assert trouble is not None
    assert trouble.reason == "random-numbers"


def test_what_differs_beside_the_order_of_draws_is_evidence(observe: Callable[..., Observation]) -> None:
    hole = "second = torch.randn(3); return torch.rand(3) + given[0] + 1, second + given[0]"
    seen = observe(DRAWS.replace("{hole}", hole).replace("{more}", ""))
    assert {item.place for item in seen.differences} == {"call 0 output[0]", "global same[0]"}
    assert trouble_of(seen) is None


def test_settled_draws_hang_on_no_order() -> None:
    program = """
import torch
from torchbisect.probe.agent.run.deterministic_rng import DeterministicRandom
def draws(order):
    kinds = [lambda: torch.rand(4), lambda: torch.randn(2, 2), lambda: torch.randint(3, 9, (5,)),
             lambda: torch.nn.functional.dropout(torch.ones(6)), lambda: torch.empty(3).exponential_()]
    made = {number: kinds[number]().tolist() for number in order}
    return [made[number] for number in sorted(made)]
with DeterministicRandom():
    assert draws([0, 1, 2, 3, 4]) == draws([4, 2, 0, 1, 3])
    numbers = torch.rand(1000)
    assert 0.4 < numbers.mean() < 0.6 and numbers.min() > 0 and numbers.max() < 1
    assert abs(torch.randn(1000).std() - 1) < 0.1
    assert set(torch.randint(3, 6, (200,)).tolist()) == {3, 4, 5}
"""
    subprocess.run([sys.executable, "-c", program], check=True)


# Each prints, or leaves in a global, what no two runs need have in common; the last word of the table is what they do.
VARIES = {
    "fresh memory": "f = torch.compile(lambda x: x + {hole}, backend='eager')\n"
    "waste = torch.empty(5000)\nprint(waste.sum())\nsame = f(torch.ones(2))\n",
    "the clock": "import time\nf = torch.compile(lambda x: x + {hole}, backend='eager')\nbegan = time.time()\n"
    "same = f(torch.ones(2))\nprint(f'{time.time() - began:.6f} seconds at', time.perf_counter())\n",
    "an address": "f = torch.compile(lambda x: x + {hole}, backend='eager')\nclass Thing: pass\nthing = Thing()\n"
    "print(thing, hex(id(thing)))\nsame = f(torch.ones(2))\n",
    "the order of a set": "f = torch.compile(lambda x: x + {hole}, backend='eager')\nclass Thing: pass\n"
    "things = {Thing() for _ in range(9)}\nprint([id(t) % 97 for t in things])\nsame = f(torch.ones(2))\n",
    "random numbers": "import random\nf = torch.compile(lambda x: x + torch.rand(3) + {hole}, backend='eager')\n"
    "print(random.SystemRandom().random())\nsame = f(torch.ones(3))\n",
}


@pytest.mark.parametrize("name", VARIES)
def test_what_varies_is_left_out_and_nothing_else(observe: Callable[..., Observation], name: str) -> None:
    assert observe(VARIES[name].replace("{hole}", "1")).differences == ()
    seen = observe(VARIES[name].replace("{hole}", "(2 if torch.compiler.is_compiling() else 1)"))
    places = {item.place for item in seen.differences}
    assert places & {"call 0 output", "call 1 output", "global same", "call 1 argument x"}, seen.differences
    assert not any(place.startswith("printed") for place in places)
