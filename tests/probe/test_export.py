"""What torch exports, or compiles ahead of time, is compared with the module that it was made of."""

from __future__ import annotations

import pytest

from torchbisect.core.repro import Repro, Settings
from torchbisect.core.verdict import MismatchKind
from torchbisect.probe.localize.backends import localize
from torchbisect.probe.probe import Probe

pytestmark = [pytest.mark.torch, pytest.mark.long]

# A deque without room keeps its items under dynamo, up to torch 2.14.
WINDOW = """\
import collections
import torch


class Window(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size
        self.inner = torch.nn.Linear(4, 4)

    def forward(self, x):
        recent = collections.deque(maxlen=self.size)
        recent.append(self.inner(x))
        return x * len(recent)


x = torch.ones(2, 4)
program = torch.export.export(Window({size}), (x,), strict=True)
"""
# An exception of a view goes past its handler when it is exported.
REFUSED = """\
import torch


class Refused(torch.nn.Module):
    def forward(self, x):
        try:
            return x.view(3, 5)
        except RuntimeError:
            return x + 1


x = torch.ones(7)
print(torch.export.export(Refused(), (x,), strict=False).module()(x))
"""
# AOTInductor compiles for inference, with a copy of the module's parameters and buffers.
COUNTED = """\
import torch


class Counted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x):
        self.calls.add_(1)
        return self.inner(x) * self.calls, self.inner.bias


x = torch.ones(2, 4)
model = Counted()
program = torch.export.export(model, (x,))
"""
USES = {
    "module": "print(program.module()(x))",
    "decomposed": "print(program.run_decompositions().module()(x))",
    "saved": "torch.export.save(program, 'a.pt2')\nprint(torch.export.load('a.pt2').module()(x))",
    "graph": "print(len(program.graph.nodes) > 2, program.module()(x).sum())",
    "gradient": "program.module()(x.requires_grad_()).sum().backward()\nprint(x.grad)",
}
AHEAD = {
    "package": """\
path = torch._inductor.aoti_compile_and_package(program, package_path="model.pt2")
print(torch._inductor.aoti_load_package(path)(x))
""",
    "library": """\
import torch._export
path = torch._inductor.aot_compile(program.module(), (x,))
print(torch._export.aot_load(path, "cpu")(x))
""",
}


@pytest.mark.parametrize("use", USES)
def test_an_exported_module_is_compared_with_the_module(probe: Probe, use: str) -> None:
    right = Repro(WINDOW.format(size=2) + USES[use] + "\n")
    assert probe.untestable(right) is None
    assert probe.mismatch(right) is None


def test_a_bug_of_this_torch_shows_in_what_it_exports(probe: Probe) -> None:
    wrong = Repro(WINDOW.format(size=0) + USES["module"] + "\n")
    found = probe.mismatch(wrong)
    assert found is not None
    assert found.kind is MismatchKind.VALUES
    assert localize(probe, wrong, found).component == "export"


def test_an_exporter_that_raises_is_a_mismatch(probe: Probe) -> None:
    found = probe.mismatch(Repro(REFUSED))
    assert found is not None
    assert found.kind is MismatchKind.RAISES
    assert "shape '[3, 5]' is invalid" in found.summary


@pytest.mark.parametrize("use", AHEAD)
def test_a_model_compiled_ahead_of_time_is_compared_with_the_module(probe: Probe, use: str) -> None:
    assert probe.mismatch(Repro(WINDOW.format(size=2) + AHEAD[use])) is None
    wrong = Repro(WINDOW.format(size=0) + AHEAD[use])
    found = probe.mismatch(wrong)
    assert found is not None
    assert found.kind is MismatchKind.VALUES
    place = localize(probe, wrong, found)
    assert (place.component, place.backend) == ("export", "eager")


@pytest.mark.parametrize("backend", [None, "aot_eager"])
@pytest.mark.parametrize("use", AHEAD)
def test_a_model_compiled_ahead_of_time_has_a_state_of_its_own_and_no_gradients(
    probe: Probe, use: str, backend: str | None
) -> None:
    right = Repro(COUNTED + AHEAD[use] + AHEAD[use].splitlines()[-1] + "\n")
    assert probe.untestable(right, Settings(backend=backend)) is None
    assert probe.mismatch(right, Settings(backend=backend)) is None
