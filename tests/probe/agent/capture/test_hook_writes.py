"""Hooks that a compiler calls too often, too seldom, in another order or with other values.

No torch here gets them wrong, so some bugs are planted in a copy of its Python, as a nightly would carry them: there
each script is told by its kind and place, and on the torch as it is the same script is clean.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
from releases import TORCHES

from torchbisect.containers.store.cache import Cache
from torchbisect.containers.store.copies import overlaid, packages_of
from torchbisect.containers.venv.venv import Venv
from torchbisect.core.mismatch import MismatchKind
from torchbisect.core.repro import Repro, Settings
from torchbisect.probe.agent_client import Agent
from torchbisect.probe.judge.observation import Observation

pytestmark = pytest.mark.torch


class Plant(NamedTuple):
    """A bug: in which file of torch's, what is found there, and what is put in its place."""

    file: str
    found: str
    put: str


PLANTS = (
    # A module's forward hooks run the last one first.
    Plant(
        "torch/nn/modules/module.py",
        r"\*self\._forward_hooks\.items\(\),(\s*\):\s*# mark that)",
        r"*list(self._forward_hooks.items())[:: -1 if torch.compiler.is_compiling() else 1],\1",
    ),
    # Compiled autograd calls the hook after an accumulation twice ...
    Plant(
        "torch/_dynamo/compiled_autograd.py",
        r'(\n +)proxy = (self\.proxy_call_hook\(\s*hook,\s*input,\s*hook_type="post_acc_grad_hook",\s*\))',
        r"\1\2\1proxy = \2",
    ),
    # ... and a tensor's own hook not at all.
    Plant(
        "torch/_dynamo/compiled_autograd.py",
        r"(def tensor_pre_hook\([^)]*\)[^:]*:\n)",
        r"\1        return inputs\n",
    ),
)

ORDER = """\
order = []
net = torch.nn.Sequential(torch.nn.Linear(2, 2))
net[0].register_forward_hook(lambda module, inputs, output: order.append("first"))
net[0].register_forward_hook(lambda module, inputs, output: order.append("second"))
torch.compile(net, backend="eager")(torch.ones(1, 2))
"""
TWICE = """\
calls = 0
def count(parameter):
    global calls
    calls += 1
w = torch.ones(2, requires_grad=True)
w.register_post_accumulate_grad_hook(count)
torch._dynamo.config.compiled_autograd = True
torch.compile(lambda: (w * w).sum().backward(), backend="eager")()
"""
NEVER = """\
seen = {}
w = torch.ones(2, requires_grad=True)
w.register_hook(lambda gradient: seen.update(sum=gradient.sum().item()))
torch._dynamo.config.compiled_autograd = True
torch.compile(lambda: (w * w).sum().backward(), backend="eager")()
"""
CASES = [
    ("in another order", ORDER, "global order[0]", "value"),
    ("too often", TWICE, "global calls", "value"),
    ("not at all", NEVER, "global seen", "keys"),
]


@pytest.fixture(scope="module")
def planted(installed: Venv, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    """An agent on a copy of the installed torch that has the bugs."""
    site = packages_of(installed)
    layer: dict[str, bytes | None] = {}
    for plant in PLANTS:
        text = (layer.get(plant.file) or (site / plant.file).read_bytes()).decode()
        changed, count = re.subn(plant.found, plant.put, text)
        assert count == 1, plant
        layer[plant.file] = changed.encode()
    cache = Cache(tmp_path_factory.mktemp("cache"))
    with overlaid(cache, installed, layer, "planted") as copy, Agent(copy) as agent:
        yield agent


@pytest.mark.parametrize(("name", "script", "place", "attribute"), CASES, ids=[case[0] for case in CASES])
def test_a_planted_bug_is_told(planted: Agent, name: str, script: str, place: str, attribute: str) -> None:
    seen = planted.observe(Repro("import torch\n" + script), Settings())
    assert seen.differences, (seen, name)
    first = seen.differences[0]
    assert (first.kind, first.place, first.attribute) == (MismatchKind.HOOKS, place, attribute), seen.differences[:4]


@pytest.mark.parametrize(("name", "script", "place", "attribute"), CASES, ids=[case[0] for case in CASES])
def test_without_the_bug_it_is_clean(
    observe: Callable[..., Observation], name: str, script: str, place: str, attribute: str
) -> None:
    seen = observe(script)
    assert (seen.eager.how, seen.compiled.how) == ("finished", "finished"), seen.compiled.raised
    assert seen.compiled.graphs, name
    assert seen.differences == ()


# The compiler is right here; the script itself does otherwise where it is compiled.
TOLD = "torch._dynamo.utils.counters['stats']['unique_graphs']"
WRITES = [
    (
        "other values",
        "seen = []\nw = torch.ones(2, requires_grad=True)\n"
        "w.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad * {hole}))\n",
        "global seen[0]",
    ),
    (
        "a counter of a closure",
        "def make():\n    count = 0\n    def hook(grad):\n        nonlocal count\n        count += {hole}\n"
        "    def counted():\n        return count\n    return hook, counted\n"
        "hook, counted = make()\nw = torch.ones(2, requires_grad=True)\nw.register_hook(hook)\n",
        "global hook closure count",
    ),
    (
        "an object of the script's",
        "class Log:\n    def __init__(self):\n        self.last = 0\n"
        "    def hook(self, grad):\n        self.last = {hole}\n"
        "log = Log()\nw = torch.ones(2, requires_grad=True)\nw.register_hook(log.hook)\n",
        "global log.last",
    ),
    (
        "a hook on many tensors",
        "seen = []\nw = torch.ones(2, requires_grad=True)\n"
        "torch.autograd.graph.register_multi_grad_hook((w,), lambda grads: seen.append({hole}))\n",
        "global seen[0]",
    ),
    (
        "a hook on every module",
        "seen = []\nw = torch.ones(2, requires_grad=True)\n"
        "torch.nn.modules.module.register_module_forward_hook(lambda m, i, o: seen.append({hole}))\n"
        "torch.nn.Identity()(w)\n",
        "global seen[0]",
    ),
]
CALL = "f = torch.compile(lambda x: (x * 2).sum(), backend='eager')\nf(w)\n"


@pytest.mark.parametrize("agent", TORCHES, indirect=True, scope="session")
@pytest.mark.parametrize(("name", "script", "place"), WRITES, ids=[case[0] for case in WRITES])
def test_what_a_hook_writes_is_the_hooks_work(
    observe: Callable[..., Observation], name: str, script: str, place: str
) -> None:
    wrong = script.replace("{hole}", f"(2 if {TOLD} else 1)")
    if "Identity" in script:
        wrong = wrong.replace("torch.nn.Identity", CALL + "torch.nn.Identity")
        right = script.replace("{hole}", "2").replace("torch.nn.Identity", CALL + "torch.nn.Identity")
    else:
        wrong, right = wrong + CALL + "f(w).backward()\n", script.replace("{hole}", "2") + CALL + "f(w).backward()\n"
    seen = observe(wrong)
    assert seen.differences, seen
    assert (seen.differences[0].kind, seen.differences[0].place) == (MismatchKind.HOOKS, place), seen.differences[:4]
    assert observe(right).differences == ()
