"""Bugs of torch 2.13, each with the script beside it that is right. Written as a user would meet them."""

from __future__ import annotations

from torchbisect.core.verdict import MismatchKind

MAXLEN = """\
import collections, torch
def count(x):
    recent = collections.deque([1, 2, 3], maxlen={length})
    recent.append(4)
    return x * len(recent)
torch.compile(count, backend="eager")(torch.ones(2))
"""
HOOKED = """\
import torch
net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
fast = torch.compile(net, backend="eager")
{before}net[0].register_forward_hook(lambda module, inputs, output: output + 100)
x = torch.ones(1, 2)
fast(x)
{after}net[0].register_forward_hook(lambda module, inputs, output: output + 100)
y = fast(x)
"""
FALLBACK = """\
import torch
@torch.compile(backend="eager")
def rows(x):
    try:
        return x.view({rows}, 4)
    except RuntimeError:
        return x.reshape(-1)
rows(torch.arange(8.0))
"""
WINDOWS = """\
import torch
def scale(buffer):
    windows = buffer.unfold(0, 2, {step})
    windows.mul_(10)
    return buffer.sum()
buffer = torch.arange(1.0, 11.0)
torch.compile(scale, backend="aot_eager")(buffer)
"""
REGISTRY = """\
import torch
def make():
    seen = []
    {definition}
    def step(x):
        {use}
        return x * 2
    return step, seen
step, seen = make()
torch.compile(step, backend="eager")(torch.ones(2))
"""
LOCAL_CLASS = "class Log:\n        def hit(self, value):\n            seen.append(value)"
ALPHA = """\
import torch
def act(x, alpha):
    return torch.celu_(x, alpha)
compiled = torch.compile(act, backend="aot_eager_decomp_partition", dynamic=True)
try:
    compiled(torch.linspace(-1, 1, 4), {alpha})
except RuntimeError as error:
    print("rejected", error)
"""

BUGS = {
    "python semantics": (MAXLEN.format(length=0), MAXLEN.format(length=2), {MismatchKind.VALUES}),
    "hook ignored": (HOOKED.format(before="# ", after=""), HOOKED.format(before="", after="# "), {MismatchKind.VALUES}),
    "handler skipped": (FALLBACK.format(rows=3), FALLBACK.format(rows=2), {MismatchKind.RAISES}),
    "mutation": (WINDOWS.format(step=4), WINDOWS.format(step=2), {MismatchKind.VALUES, MismatchKind.MUTATION}),
    "side effect lost": (
        REGISTRY.format(definition=LOCAL_CLASS, use='Log().hit("called")'),
        REGISTRY.format(definition=LOCAL_CLASS, use='seen.append("called")'),
        {MismatchKind.SIDE_EFFECTS},
    ),
    "no exception": (ALPHA.format(alpha="0.0"), ALPHA.format(alpha="0.5"), {MismatchKind.MISSING_RAISE}),
}
