"""Generated scripts without a bug show no difference, with each backend."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from torchbisect.probe.judge.observation import Observation

pytestmark = pytest.mark.torch

OPERATIONS = [
    "{x} = {x} * {c} + {y}",
    "{x} = ({x} - {x}.mean(-1, keepdim=True)).tanh()",
    "{x} = torch.where({x} > {c}, {x}, {y})",
    "{x} = {x}.clone().mul_({c})",
    "{x} = {x} @ {y}.transpose(0, 1) @ {x}",
    "{x} = torch.softmax({x}, {axis})",
    "{x} = torch.cat([{x}, {y}], {axis}).narrow({axis}, 1, 4)",
    "{x} = {x}.t().contiguous().view(4, 4)",
    "{x} = {x}.flip({axis}).roll(1, {axis})",
    "{x} = {x} + {y}.detach()",
    "{x} = torch.nn.functional.layer_norm({x}, (4,))",
    "{x} = {x}.index_select({axis}, torch.tensor([3, 1, 2, 0]))",
    "{x} = {x}.masked_fill({y} > {c}, {c})",
    "{x} = torch.stack([{x}, {y}]).sum(0)",
    "{x} = {x}.unfold({axis}, 2, 2).sum(-1).repeat_interleave(2, {axis})",
    "{x} = {x} / ({y}.abs() + 1)",
    "{x} = torch.einsum('ij,kj->ik', {x}, {y})",
    "{x} = {x}.cumsum({axis}).clamp(-3, 3)",
    "if {x}.shape[0] > 2: {x} = {x} + 1",
    "for _ in range(2): {x} = {x} * 0.5",
    "{x} = {x} + len([i for i in range(3) if i % 2])",
    "{x} = {x} + torch.randn_like({x}) * 0.1",
    "{x} = torch.nn.functional.dropout({x}, 0.3)",
    "print('half way', {x}.shape)",
    "if float({x}.detach().sum()) > 1e6: {x} = {x} * 0",
    "{x} = {x}.clone(); {x}[1:].mul_({c})",
    "{x} = {x} * 1; {x}.view(16)[::2].add_({c})",
    "{x} = {x} * 1; {x}.t()[{axis}] = {c}",
    "{x} = {x} * 1; {x}.diagonal().copy_({y}.detach()[0])",
    "{x} = torch.empty_like({x}).copy_({x}).sub_({y})",
    "{x} = Scaled.apply({x}, {c})",
    "{x} = Pair({x}, {y}).mixed({c})",
    "pair = Pair({x}, {y}); pair.left = pair.left * {c}; {x} = pair.left + pair.right",
    "parts = dict(a={x}, b={y}); parts['a'] = parts['a'] + {c}; {x} = sum(parts.values())",
    "{x} = torch.stack([row * number for number, row in enumerate({x}.unbind({axis}))], {axis})",
    "{x}, {y} = {y}, {x}",
    "{x} = functools.reduce(torch.add, [{x}, {y}, {x}])",
    "{x} = functools.partial(torch.mul, other={y})({x})",
    "with torch.no_grad(): kept = {x}.exp()\n{x} = {x} + kept.tanh()",
    "try: raise ValueError({c})\nexcept ValueError: {x} = {x} + {c}",
    "match {x}.dim():\n    case 2: {x} = {x} * {c}\n    case _: {x} = {x} * 0",
    "{x} = {x} * 1; {x}.register_hook(lambda g: g * 0.5) if {x}.requires_grad else None",
    "{x} = torch.func.vmap(lambda row: row.sin() * {c})({x})",
    "{x} = {x} + torch.func.grad(lambda v: v.square().sum())({y}.detach())",
    "{x} = torch.utils.checkpoint.checkpoint(torch.tanh, {x}, use_reentrant=False)",
]

RETURNS = [
    "return {x}",
    "return {x}, {y}",
    "return dict(first={x}, second=[{y}, {x}.shape])",
    "return Result({x}, [{y}])",
    "return {x}.sum()",
    "return {x}[0], {x}.t(), 3, 'word', None",
    "return ({x}.argmax(), {x} > 0, {x}.to(torch.float64))",
]

DRIVERS = [
    "out = {f}(torch.randn(4, 4), torch.randn(4, 4))",
    "a = torch.randn(4, 4, requires_grad=True)\nout = {f}(a, torch.ones(4, 4))\n"
    "total = sum(item.sum() for item in tensors(out))\n"
    "if total.requires_grad: total.backward()\nprint('total %.4f' % float(total))",
    "a, b = torch.randn(4, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True)\n"
    "total = sum(item.tanh().sum() for item in tensors({f}(a, b)))\n"
    "if total.requires_grad:\n"
    "    grads = torch.autograd.grad(total, [a, b], create_graph={graph}, allow_unused=True)",
    "with torch.no_grad():\n    for _ in range({n}):\n        out = {f}(torch.randn(4, 4), torch.eye(4))",
    "kept = []\nfor size in range({n}):\n    kept.append({f}(torch.full((4, 4), float(size)), torch.ones(4, 4)))",
    "seen = []\na = torch.randn(4, 4, requires_grad=True)\na.register_hook(lambda g: seen.append(g.norm().item()))\n"
    "for item in tensors({f}(a * 1, a * 2)):\n    if item.requires_grad:\n        item.sum().backward()\n        break",
    "import time\nbegan = time.time()\nout = {f}(torch.randn(4, 4).t(), torch.randn(8, 4)[::2])\n"
    "print('took', time.time() - began, 'seconds at', hex(id(out)))",
]

MODULES = [
    "net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Dropout({p}), "
    "torch.nn.Linear(8, 4))",
    "net = torch.nn.Sequential(torch.nn.Unflatten(1, (1, 2, 2)), torch.nn.Conv2d(1, 3, 2, padding=1), "
    "torch.nn.BatchNorm2d(3), torch.nn.Flatten(), torch.nn.Linear(27, 4))",
    "net = Counting(torch.nn.Linear(4, 4), {p})",
    "net = torch.nn.TransformerEncoderLayer(4, 2, 8, dropout={p}, batch_first=True)",
    "net = Counting(torch.nn.Linear(4, 4), {p})\nnet.inner.register_forward_hook(lambda m, i, o: net.log.append(-1))",
    "net = torch.nn.Linear(4, 4)\nnet.register_full_backward_hook(lambda m, i, o: seen.append(o[0].sum().item()))",
    "net = torch.nn.Linear(4, 4)\n"
    "net.weight.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.sum().item()))",
    "net = torch.nn.Linear(4, 4)\nnet.bias.register_hook(lambda g: seen.append(g.norm().item()))",
    "net = torch.nn.ModuleList(Counting(torch.nn.Linear(4, 4), {p}) for _ in range(2))\n"
    "net.forward = lambda x: net[1](net[0](x))",
    "net = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(4, 4))",
]

TRAINING = """
seen = []
{module}
{compiled}
opt = torch.optim.{optimizer}(net.parameters(), lr=0.01)
losses = []
data = torch.utils.data.TensorDataset(torch.randn(8, 4), torch.randn(8, 4))
for epoch in range({n}):
    for x, y in torch.utils.data.DataLoader(data, batch_size=4, shuffle=True):
        opt.zero_grad(set_to_none={none})
        loss = torch.nn.functional.mse_loss(run(x), y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        losses.append(loss.item())
    print(f'epoch {{epoch}} loss {{losses[-1]:.4f}}')
net.eval()
final = run(torch.ones(2, 4))
"""

PRELUDE = """
import dataclasses
import functools
import torch
import torch._functorch.config
import torch.utils.checkpoint

# Otherwise a compiled backward with ``create_graph=True`` is refused: docs/found.md.
torch._functorch.config.donated_buffer = False

@dataclasses.dataclass
class Result:
    value: torch.Tensor
    parts: list

@dataclasses.dataclass
class Pair:
    left: torch.Tensor
    right: torch.Tensor

    def mixed(self, share):
        return self.left * share + self.right * (1 - share)

class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.factor, None

class Counting(torch.nn.Module):
    def __init__(self, inner, p):
        super().__init__()
        self.inner, self.p, self.calls = inner, p, 0
        self.register_buffer('total', torch.zeros(()))
        self.log = []

    def forward(self, x):
        self.calls += 1
        self.total.add_(x.detach().sum())
        self.log.append(self.calls)
        return torch.nn.functional.dropout(self.inner(x), self.p, self.training)

def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value] if value.is_floating_point() else []
    if isinstance(value, Result):
        value = vars(value)
    if isinstance(value, dict):
        value = list(value.values())
    return [t for v in value for t in tensors(v)] if isinstance(value, (list, tuple)) else []
"""


def indented(lines: list[str]) -> str:
    return textwrap.indent("".join(f"{line}\n" for line in lines), "    ")


@st.composite
def functions(draw: st.DrawFn, backend: str) -> str:
    """Draw a function of two square matrices, compiled in a common way, with a statement that calls it."""
    names = {"x": "x", "y": "y"}
    lines = []
    for template in draw(st.lists(st.sampled_from(OPERATIONS), min_size=1, max_size=6)):
        x, y = draw(st.permutations(["x", "y"]))
        c = draw(st.sampled_from(["0.5", "2.0", "-1.0"]))
        lines.append(template.format(x=x, y=y, c=c, axis=draw(st.integers(0, 1))))
    lines.append(draw(st.sampled_from(RETURNS)).format(**names))
    form = draw(st.sampled_from(["decorator", "function", "closure", "method"]))
    dynamic = draw(st.sampled_from(["None", "True", "False"]))
    options = f"backend={backend!r}, dynamic={dynamic}"
    if form == "decorator":
        head = f"@torch.compile({options})\ndef f(x, y):\n" + indented(lines)
    elif form == "function":
        head = "def g(x, y):\n" + indented(lines) + f"f = torch.compile(g, {options})\n"
    elif form == "closure":
        inner = ["calls = []", "def g(x, y):", indented(["calls.append(1)", *lines]), "return g"]
        head = "def make():\n" + indented(inner) + f"f = torch.compile(make(), {options})\n"
    else:
        body = ["def g(self, x, y):", indented(["self.count = getattr(self, 'count', 0) + 1", *lines])]
        head = "class Holder:\n" + indented(body) + f"holder = Holder()\nf = torch.compile(holder.g, {options})\n"
    driver = draw(st.sampled_from(DRIVERS))
    # Dynamo traces the backward of a Function without a graph of its own: docs/found.md.
    graph = draw(st.booleans()) and "Scaled.apply" not in head
    return head + driver.format(f="f", n=draw(st.integers(1, 3)), graph=graph) + "\n"


@st.composite
def trainings(draw: st.DrawFn, backend: str) -> str:
    """Draw a training loop over a module that is compiled in a common way."""
    module = draw(st.sampled_from(MODULES)).format(p=draw(st.sampled_from(["0.0", "0.5"])))
    compiled = draw(
        st.sampled_from(
            [
                f"run = torch.compile(net, backend={backend!r})",
                f"net.compile(backend={backend!r})\nrun = net",
                f"run = torch.compile(lambda x: net(x), backend={backend!r})",
                f"net.forward = torch.compile(net.forward, backend={backend!r})\nrun = net",
            ]
        )
    )
    return TRAINING.format(
        module=module,
        compiled=compiled,
        optimizer=draw(st.sampled_from(["SGD", "Adam", "AdamW"])),
        n=draw(st.integers(1, 2)),
        none=draw(st.booleans()),
    )


def scripts(backend: str) -> st.SearchStrategy[str]:
    """Return a strategy for whole scripts: one or two functions, or a training loop."""
    several = st.lists(functions(backend), min_size=1, max_size=2).map("\n".join)
    return st.one_of(several, trainings(backend)).map(lambda body: PRELUDE + body)


def check(observe: Callable[..., Observation], source: str) -> None:
    seen = observe(source)
    assert seen.eager.how in ("finished", "raised"), seen.eager
    assume(seen.eager.how == "finished")  # else the operations do not fit together, and there is nothing to compare
    assert seen.compiled.how == "finished", (seen.compiled.raised, source)
    assert seen.differences == (), source


SLOW: dict[str, Any] = {"deadline": None, "suppress_health_check": list(HealthCheck)}
# Each example takes seconds, so there are few. ``HYPOTHESIS_PROFILE=wide`` runs more than three hundred in all.
EXAMPLES = max(1, settings.default.max_examples // 5)


@settings(max_examples=EXAMPLES, **SLOW)
@given(source=scripts("eager"))
def test_correct_scripts_show_no_difference_through_dynamo(observe: Callable[..., Observation], source: str) -> None:
    check(observe, source)


@settings(max_examples=EXAMPLES, **SLOW)
@given(source=scripts("aot_eager"))
def test_correct_scripts_show_no_difference_through_autograd(observe: Callable[..., Observation], source: str) -> None:
    check(observe, source)


@settings(max_examples=max(1, EXAMPLES // 4), **SLOW)
@given(source=scripts("inductor"))
def test_correct_scripts_show_no_difference_through_inductor(observe: Callable[..., Observation], source: str) -> None:
    check(observe, source)
