"""What a backend of the script prints and counts itself is no mismatch, and what its graph computes can be one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from releases import TORCHES

from torchbisect.probe.judge.observation import Observation

pytestmark = pytest.mark.torch

on_each_torch = pytest.mark.parametrize("agent", TORCHES, indirect=True, scope="session")

RUN = "torch.compile({}, backend=backend)(torch.ones(2))\n"
F = RUN.format("lambda x: x * 2")
BACKENDS = {
    "prints": "def backend(gm, inputs):\n    print('compiling', gm.code)\n    return gm.forward\n" + F,
    "appends to a list": "graphs = []\ndef backend(gm, inputs):\n    graphs.append(gm)\n    return gm.forward\n" + F,
    "names what is made later": "def backend(gm, inputs):\n    graphs.append(gm)\n    return gm.forward\n"
    "f = torch.compile(lambda x: x * 2, backend=backend)\ngraphs = []\nf(torch.ones(2))\n",
    "counts in a global": "n = 0\ndef backend(gm, inputs):\n    global n\n    n += 1\n    return gm.forward\n" + F,
    "counts in a cell": "def make():\n    n = 0\n    def backend(gm, inputs):\n        nonlocal n\n        n += 1\n"
    "        return gm.forward\n    return backend, lambda: n\nbackend, count = make()\n" + F,
    "counts in a class": "class Seen:\n    graphs = 0\ndef backend(gm, inputs):\n    Seen.graphs += 1\n"
    "    return gm.forward\nclass Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.seen = Seen()\n    def forward(self, x):\n        return x * 2\n" + RUN.format("Net()"),
    "is an object": "class Backend:\n    def __init__(self):\n        self.n = 0\n    def __call__(self, gm, inputs):\n"
    "        self.n += 1\n        return gm.forward\nbackend = Backend()\n" + F,
    "has arguments": "import functools\nseen = []\ndef inner(gm, inputs, level):\n    seen.append(level)\n"
    "    return gm.forward\nbackend = functools.partial(inner, level=1)\n" + F,
    "is a compiler of AOTAutograd": "from torch._dynamo.backends.common import aot_autograd\nseen = []\n"
    "def inner(gm, inputs):\n    seen.append(1)\n    print(gm.code)\n    return gm.forward\n"
    "backend = aot_autograd(fw_compiler=inner)\n" + F,
    "counts its runs": "n = 0\ndef backend(gm, inputs):\n    def run(*args):\n        global n\n        n += 1\n"
    "        return gm(*args)\n    return run\n" + F,
}


@on_each_torch
@pytest.mark.parametrize("script", BACKENDS.values(), ids=BACKENDS)
def test_what_a_backend_does_itself_is_no_mismatch(script: str, observe: Callable[..., Observation]) -> None:
    seen = observe(script)
    assert seen.eager.how == seen.compiled.how == "finished", (seen.eager.raised, seen.compiled.raised, seen.notes)
    assert seen.differences == ()


def test_what_is_printed_around_a_backend_is_compared(observe: Callable[..., Observation]) -> None:
    backend = "def backend(gm, inputs):\n    print('compiling')\n    return lambda *args: (gm(*args)[0] + 1,)\n"
    assert observe(backend + "print(float(" + F.strip() + "[0]))").differences[-1].place == "printed line 0"
    assert observe(backend + F).differences[0].place == "call 0 output"
