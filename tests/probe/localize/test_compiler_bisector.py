"""Torch's own bisector over the parts of its compiler."""

from __future__ import annotations

import pytest

from torchbisect.core.repro import Repro
from torchbisect.probe.localize.compiler_bisector import PassFound, read_pass
from torchbisect.probe.probe import Probe

CELU = """\
import torch
def act(x, alpha):
    return torch.celu_(x, alpha)
try:
    torch.compile(act, dynamic=True)(torch.linspace(-1, 1, 4), {alpha})
except RuntimeError:
    pass
else:
    assert {alpha}, "not rejected"
"""


@pytest.mark.torch
def test_the_decomposition_is_named(probe: Probe) -> None:
    found = read_pass(probe.run_tool("find-pass", Repro(CELU.format(alpha="0.0"))))
    assert found is not None
    assert (found.backend, found.subsystem) == ("aot_eager_decomp_partition", "decomposition")
    assert "celu" in found.text


FOLDED = """\
import torch
y = torch.compile(lambda x: x * 0)(torch.full((4,), float("nan")))
assert y.isnan().all(), y
"""


@pytest.mark.torch
def test_the_application_of_a_pass_is_counted(probe: Probe) -> None:
    """A graph taken from a cache would run no pass again."""
    found = read_pass(probe.run_tool("find-pass", Repro(FOLDED)))
    assert found is not None
    assert (found.backend, found.subsystem, found.number) == ("inductor", "joint_graph_passes", 1)


@pytest.mark.torch
def test_a_script_that_kills_its_process_gives_no_answer(probe: Probe) -> None:
    assert read_pass(probe.run_tool("find-pass", Repro("import os\nos.kill(os.getpid(), 9)\n"))) is None


@pytest.mark.torch
def test_a_tool_describes_the_machine(probe: Probe) -> None:
    assert "PyTorch version" in (probe.run_tool("collect-env", Repro("")).text or "")


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (PassFound("eager", None, None, None), "eager, no single part of it"),
        (PassFound("inductor", "lowerings", 4, "aten.\n roll"), "inductor, lowerings, application 4: aten. roll"),
        (PassFound("inductor", "inductor_cse", 0, "inductor_cse"), "inductor, inductor_cse"),
    ],
)
def test_text_of_an_answer(found: PassFound, text: str) -> None:
    assert found.text == text
