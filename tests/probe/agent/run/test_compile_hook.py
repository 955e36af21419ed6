"""Every entry point of the compiler is recorded, obeys the settings, and shows no difference if used correctly."""

from __future__ import annotations

import pytest

from torchbisect.core.repro import Repro, Settings
from torchbisect.probe.agent_client import Agent

pytestmark = pytest.mark.torch

# Each section is a script. ``NET`` and ``X`` stand for a small module and an input of it.
SCRIPTS = """
### function
f = torch.compile(lambda x: x + 1, backend='eager')
f(torch.ones(2))
### decorator
@torch.compile
def f(x):
    return x + 1
f(torch.ones(2))
### decorator with arguments
@torch.compile(backend='eager', dynamic=True)
def f(x):
    return x + 1
f(torch.ones(2))
### bound name
from torch import compile as c
c(lambda x: x + 1, backend='eager')(torch.ones(2))
### module
NET
c = torch.compile(net, backend='eager')
assert c._orig_mod is net
c(torch.ones(2, 3))
### module in place
class Net(torch.nn.Module):
    def forward(self, x):
        return x + 1
net = Net()
net.compile(backend='eager')
net(torch.ones(2, 3))
### module's forward
NET
net.forward = torch.compile(net.forward, backend='eager')
net(torch.ones(2, 3))
### part of a module
NET
net[0] = torch.compile(net[0], backend='eager')
net(torch.ones(2, 3))
### method
class A:
    k = 2
    @torch.compile(backend='eager')
    def f(self, x):
        return x * self.k
A().f(torch.ones(2))
### dynamo's optimize
import torch._dynamo
@torch._dynamo.optimize('eager')
def f(x):
    return x + 1
f(torch.ones(2))
### partial
import functools
f = torch.compile(functools.partial(torch.add, alpha=2), backend='eager')
f(torch.ones(2), torch.ones(2))
### torch's own function
torch.compile(torch.sigmoid, backend='eager')(torch.ones(2))
### nested
g = torch.compile(lambda x: x + 1, backend='eager')
f = torch.compile(lambda x: g(x) * 2, backend='eager')
f(torch.ones(2))
### twice
f = torch.compile(torch.compile(lambda x: x + 1, backend='eager'), backend='eager')
f(torch.ones(2))
### partly disabled
g = torch.compile(lambda x: x + 1, backend='eager')
h = torch.compiler.disable(g)
f = torch.compile(lambda x: h(x) * 2, backend='eager')
f(torch.ones(2)), h(torch.ones(2))
### nested in a module
NET
net[0] = torch.compile(net[0], backend='eager')
c = torch.compile(net, backend='eager')
c(torch.ones(2, 3))
### options
torch.compile(lambda x: x + 1, options={'epilogue_fusion': False})(torch.ones(2))
### mode
torch.compile(lambda x: x + 1, mode='reduce-overhead')(torch.ones(2))
### state dict
NET
c = torch.compile(net, backend='eager')
c(torch.ones(2, 3))
print(list(c.state_dict()), c)
### grad of it
f = torch.compile(lambda x: (x ** 3).sum(), backend='eager')
h = torch.func.grad(f)(torch.ones(3))
### hessian inside
def g(x):
    return (x ** 3).sum()
f = torch.compile(torch.func.hessian(g), backend='eager')
h = f(torch.ones(3))
### grad of grad by inputs only
NET
X
c = torch.compile(net, backend='eager')
(g,) = torch.autograd.grad(c(x).sum(), x, create_graph=True)
(gg,) = torch.autograd.grad(g.pow(2).sum(), x, create_graph=True)
(ggg,) = torch.autograd.grad(gg.sum(), x)
### vmap over it
f = torch.compile(lambda x: x * 2, backend='eager')
v = torch.vmap(lambda x: x + 1)(f(torch.ones(3, 2)))
### inference mode
NET
c = torch.compile(net, backend='eager')
with torch.inference_mode(): y = c(torch.ones(2, 3))
### autocast
NET
c = torch.compile(net, backend='aot_eager')
with torch.autocast('cpu', torch.bfloat16): c(torch.ones(2, 3)).sum().backward()
### autograd function
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return g * 2
X
f = torch.compile(Double.apply, backend='aot_eager')
f(x).sum().backward()
### compiled autograd by its flag
NET
X
torch._dynamo.config.compiled_autograd = True
@torch.compile(backend='eager')
def step():
    net(x).sum().backward()
step()
### compiled autograd by its context
import torch._dynamo.compiled_autograd as ca
NET
X
enable = getattr(ca, '_enable', None) or ca.enable
c = torch.compile(net, backend='eager')
y = c(x)
with enable(lambda gm: torch.compile(gm, backend='eager')):
    y.sum().backward()
### compiled autograd with hooks
NET
X
seen = []
x.register_hook(lambda g: g * 2)
x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.sum().item()))
torch._dynamo.config.compiled_autograd = True
torch.compile(lambda: net(x).sum().backward(), backend='eager')()
### compiled autograd and a graph break
NET
X
torch._dynamo.config.compiled_autograd = True
@torch.compile(backend='eager')
def step():
    y = net(x)
    torch._dynamo.graph_break()
    (y * 2).sum().backward()
step(), step()
"""

NET = "net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Tanh())"
X = "x = torch.ones(2, 3, requires_grad=True)"


def sections() -> dict[str, str]:
    """Return the scripts by their names."""
    found = {}
    for section in SCRIPTS.split("### ")[1:]:
        name, _, script = section.partition("\n")
        found[name] = script.replace("NET\n", NET + "\n").replace("X\n", X + "\n")
    return found


ENTRY_POINTS = sections()


@pytest.mark.parametrize("name", ENTRY_POINTS, ids=ENTRY_POINTS.keys())
def test_each_entry_point_is_recorded_and_shows_no_difference(agent: Agent, name: str) -> None:
    seen = agent.observe(Repro("import torch\n" + ENTRY_POINTS[name]), Settings(backend="eager"))
    assert (seen.eager.how, seen.compiled.how) == ("finished", "finished"), (seen.eager.raised, seen.compiled.raised)
    assert seen.eager.compiled
    assert seen.compiled.compiled
    assert seen.compiled.graphs or name == "grad of it"
    assert seen.differences == ()


def test_the_backend_of_the_settings_overrides_the_scripts(agent: Agent) -> None:
    script = "import torch\nf = torch.compile(lambda x: x, backend='nonsense', mode='max-autotune')\nf(torch.ones(2))"
    assert agent.observe(Repro(script), Settings()).compiled.how == "raised"
    assert agent.observe(Repro(script), Settings(backend="eager")).compiled.how == "finished"


def test_flags_are_forced_and_unknown_ones_are_noted(agent: Agent) -> None:
    script = """
import torch
torch._dynamo.config.assume_static_by_default = True
@torch.compile(backend="eager")
def f(x):
    return x + 1
f(torch.ones(2))
print(torch._dynamo.config.assume_static_by_default)
"""
    flags = (("_dynamo.config.assume_static_by_default", False), ("_inductor.config.no_such_flag", 1))
    seen = agent.observe(Repro(script), Settings(knobs=flags))
    assert seen.compiled.output == "False\n"
    assert any("no_such_flag" in note for note in seen.notes)


def test_compiled_autograd_can_be_forced_off(agent: Agent) -> None:
    script = (
        "import torch\n"
        + ENTRY_POINTS["compiled autograd by its flag"]
        + "\nprint(torch._dynamo.utils.counters['compiled_autograd']['captures'])"
    )
    assert agent.observe(Repro(script), Settings()).compiled.output == "1\n"
    assert agent.observe(Repro(script), Settings(compiled_autograd=False)).compiled.output == "0\n"


def test_the_eager_run_is_made_once(agent: Agent) -> None:
    script = "import torch\nf = torch.compile(lambda x: x + 1)\nf(torch.ones(2))"
    first = agent.observe(Repro(script), Settings(backend="eager"))
    second = agent.observe(Repro(script), Settings(backend="aot_eager"))
    assert first.eager == second.eager
    assert first.compiled != second.compiled
