"""Programs that meet a real bug by each way into torchbisect."""

from __future__ import annotations

# An in-place operation through a view with gaps changes what the view does not cover, up to torch 2.15.
_WINDOWS = """\
import torch


def scale_windows(buffer, step):
    windows = buffer.unfold(0, 2, step)
    windows.mul_(10)
    return buffer + 0

"""
API = (
    _WINDOWS
    + """
import sys
from torchbisect.api import CheckOptions, minimize

options = CheckOptions(compile={"backend": "aot_eager"}, run={"cache_dir": sys.argv[1]})
print(minimize(scale_windows, torch.arange(1.0, 11.0), 4, torchbisect=options).verdict)
"""
)
SUITE = (
    _WINDOWS
    + """
def scaled(step):
    return torch.compile(scale_windows, backend="aot_eager")(torch.arange(1.0, 11.0), step)


def test_windows():
    assert scaled(2).shape == (10,)


def test_windows_with_gaps():
    assert scaled(4).shape == (10,)
"""
)
#: Writes what torch's minifier leaves behind to ``minifier.py``.
RECORDED = (
    _WINDOWS
    + """
from torch._dynamo.repro.after_dynamo import generate_dynamo_fx_repro_string


def backend(graph, inputs):
    with open("minifier.py", "w") as file:
        file.write(generate_dynamo_fx_repro_string(graph, inputs, "aot_eager"))
    return graph.forward


torch.compile(scale_windows, backend=backend)(torch.arange(1.0, 11.0), 4)
"""
)
#: To be run with ``TORCH_TRACE``.
TRACED = _WINDOWS + 'torch.compile(scale_windows, backend="aot_eager")(torch.arange(1.0, 11.0), 4)\n'
# The decomposition of addmm multiplies what beta=0 leaves out, so a NaN in it goes on (pytorch#196596).
TRAINING = """\
import torch
from torchbisect.api import capture


class Mix(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.eye(width))

    def forward(self, x, buffer):
        return torch.addmm(buffer, x, self.weight, beta=0) * 2


model = Mix(4)
compiled = torch.compile(model, backend="aot_eager_decomp_partition")
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
buffer = torch.zeros(1, 4)
for step in range(1, 9):
    if step == 6:
        buffer = torch.full((1, 4), float("nan"))  # as torch.empty may return it
    with capture("repro"):
        loss = compiled(torch.randn(1, 4), buffer).mean()
        loss.backward()
        optimizer.step()
"""
# operator.isub has no effect on a set under dynamo, up to torch 2.8.
_LETTERS = """\
import operator
import torch


class Counted(torch.nn.Module):
    def forward(self, x):
        names = set("wxyz")
        operator.isub(names, set("yz"))
        return x * len(names)

"""
# A deque without room keeps its items under dynamo, from the release that knows deques to torch 2.14.
_WINDOW = """\
import collections
import torch


class Counted(torch.nn.Module):
    def forward(self, x):
        recent = collections.deque(maxlen=0)
        recent.append(x + 1)
        return x * len(recent)

"""
_EXPORT = """
x = torch.ones(2, 4)
program = torch.export.export(Counted(), (x,), strict=True)
"""
_CALL = "print(program.module()(x).sum())\n"
_AHEAD = """\
path = torch._inductor.aoti_compile_and_package(program, package_path="model.pt2")
print(torch._inductor.aoti_load_package(path)(x).sum())
"""
#: The script and a word of its bug, by the name of the torch.
EXPORTED = {
    "2.8.0": (_LETTERS + _EXPORT + _CALL, "isub"),
    "installed": (_WINDOW + _EXPORT + _CALL, "maxlen=0"),
}
AHEAD = {
    "2.8.0": (_LETTERS + _EXPORT + _AHEAD, "isub"),
    "installed": (_WINDOW + _EXPORT + _AHEAD, "maxlen=0"),
}
