"""What two right runs need not agree on is no mismatch; what only looks like it is one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from torchbisect.probe.observation import Observation

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
