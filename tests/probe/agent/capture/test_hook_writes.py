"""Differences in state that hooks write are attributed to hooks: wrong calls, order, number and values.

No torch has these bugs. Some are planted in a copy of its Python sources, as a nightly would carry them. The same
scripts show no difference on the unchanged torch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
from releases import TORCHES

from torchbisect.containers.environment import Venv
from torchbisect.containers.store.cache import Cache
from torchbisect.containers.venv.copies import overlaid_environment, site_packages_of
from torchbisect.core.repro import Repro, Settings
from torchbisect.core.verdict import MismatchKind
from torchbisect.probe.agent_client import Agent
from torchbisect.probe.judge.observation import Observation

pytestmark = pytest.mark.torch


class PlantedBug(NamedTuple):
    """A planted bug: a file of torch, a pattern that occurs in it once, and the replacement."""

    file: str
    pattern: str
    replacement: str


PLANTED_BUGS = (
    # Compiled, a module's forward hooks run in reverse order.
    PlantedBug(
        "torch/nn/modules/module.py",
        r"\*self\._forward_hooks\.items\(\),(\s*\):\s*# mark that)",
        r"*list(self._forward_hooks.items())[:: -1 if torch.compiler.is_compiling() else 1],\1",
    ),
    # Compiled autograd calls the hook after an accumulation twice ...
    PlantedBug(
        "torch/_dynamo/compiled_autograd.py",
        r'(\n +)proxy = (self\.proxy_call_hook\(\s*hook,\s*input,\s*hook_type="post_acc_grad_hook",\s*\))',
        r"\1\2\1proxy = \2",
    ),
    # ... and does not call a tensor's own hook.
    PlantedBug(
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
def agent_with_bugs(installed: Venv, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    """An agent on a copy of the installed torch that has the planted bugs."""
    site = site_packages_of(installed)
    layer: dict[str, bytes | None] = {}
    for bug in PLANTED_BUGS:
        text = (layer.get(bug.file) or (site / bug.file).read_bytes()).decode()
        changed, count = re.subn(bug.pattern, bug.replacement, text)
        assert count == 1, bug
        layer[bug.file] = changed.encode()
    cache = Cache(tmp_path_factory.mktemp("cache"))
    with overlaid_environment(cache, installed, layer, "planted") as copy, Agent(copy) as agent:
        yield agent


@pytest.mark.parametrize(("name", "script", "place", "attribute"), CASES, ids=[case[0] for case in CASES])
def test_a_planted_bug_is_reported(agent_with_bugs: Agent, name: str, script: str, place: str, attribute: str) -> None:
    seen = agent_with_bugs.observe(Repro("import torch\n" + script), Settings())
    assert seen.differences, (seen, name)
    first = seen.differences[0]
    assert (first.kind, first.place, first.attribute) == (MismatchKind.HOOKS, place, attribute), seen.differences[:4]


@pytest.mark.parametrize(("name", "script", "place", "attribute"), CASES, ids=[case[0] for case in CASES])
def test_without_the_bug_there_is_no_difference(
    observe: Callable[..., Observation], name: str, script: str, place: str, attribute: str
) -> None:
    seen = observe(script)
    assert (seen.eager.how, seen.compiled.how) == ("finished", "finished"), seen.compiled.raised
    assert seen.compiled.graphs, name
    assert seen.differences == ()


# The compiler is correct here. The script itself behaves differently if it is compiled.
IS_COMPILED = "torch._dynamo.utils.counters['stats']['unique_graphs']"
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
        "an object of the script",
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
def test_state_written_by_a_hook_is_attributed_to_hooks(
    observe: Callable[..., Observation], name: str, script: str, place: str
) -> None:
    wrong = script.replace("{hole}", f"(2 if {IS_COMPILED} else 1)")
    if "Identity" in script:
        wrong = wrong.replace("torch.nn.Identity", CALL + "torch.nn.Identity")
        right = script.replace("{hole}", "2").replace("torch.nn.Identity", CALL + "torch.nn.Identity")
    else:
        wrong, right = wrong + CALL + "f(w).backward()\n", script.replace("{hole}", "2") + CALL + "f(w).backward()\n"
    seen = observe(wrong)
    assert seen.differences, seen
    assert (seen.differences[0].kind, seen.differences[0].place) == (MismatchKind.HOOKS, place), seen.differences[:4]
    assert observe(right).differences == ()
