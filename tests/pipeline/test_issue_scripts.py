"""Scripts in the form of real issues end as short as a person would write them, stand alone, and show the same bug."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from torchbisect.core.verdict import MismatchKind
from torchbisect.pipeline.local_provider import LocalProvider
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.progress import Display
from torchbisect.pipeline.run import Pipeline
from torchbisect.pipeline.shared_resources import SharedResources
from torchbisect.probe.journal import Journal

pytestmark = [pytest.mark.torch, pytest.mark.long]

# A mutated input with strides (pytorch#133512), an exception of eager alone within the script's own try
# (pytorch#141865), an abort where eager raises IndexError (pytorch#126691), each with the most lines of the result.
SCRIPTS = {
    "a mutated input with strides": (
        """
import torch

def f(x):
    x.add_(1)
    return torch.as_strided_copy(x, (3,), (2,))

compiled = torch.compile(f, backend="aot_eager", fullgraph=True)
print("eager", f(torch.arange(10)[::2]))
print("compiled", compiled(torch.arange(10)[::2]))
""",
        MismatchKind.VALUES,
        12,
    ),
    "an exception that the script catches": (
        """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(1, 1)

    def forward(self, x):
        return self.linear(x)

half, single = torch.randn(1, 1, dtype=torch.float16), torch.randn(1, 1)
model = Model().eval()
compiled = torch.compile(model)

def try_one(name, model, value):
    print(name)
    try:
        model(value)
        print("Success")
    except Exception as e:
        kind = type(e).__name__
        print(f"{kind}: {e}")

try_one("eager, half", model, half)
try_one("eager, single", model, single)
try_one("compiled, half", compiled, half)
try_one("compiled, single", compiled, single)
""",
        MismatchKind.MISSING_RAISE,
        14,
    ),
    "an abort where eager raises": (
        """
import torch

def pick(x, idx):
    return (x - 0.5)[idx]

x = torch.randn(1, 8, 66, 66)
idx = torch.tensor([[1]])
try:
    pick(x, idx)
except IndexError as e:
    print("eager:", e)
print("calling compiled", flush=True)
torch.compile(pick, backend="inductor")(x, idx)
print("not reached")
""",
        None,
        14,
    ),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_script_of_an_issue_ends_short_and_stands_alone(name: str, tmp_path: Path) -> None:
    source, kind, lines = SCRIPTS[name]
    script = tmp_path / "repro.py"
    script.write_text(source)
    resources = SharedResources(Journal())
    try:
        options = Options(script, command="minimize", torch="installed", out=tmp_path / "out", verbosity=-1)
        pipeline = Pipeline(options, Display(-1), partial(LocalProvider, shared=resources))
        pipeline.execute()
    finally:
        resources.close()
    report = pipeline.report
    if report.verdict == "none":
        pytest.skip("the installed torch has this bug no more")
    assert report.minimal is not None
    assert report.minimal.stands_alone, report.notices
    assert len(report.minimal.source.splitlines()) <= lines, report.minimal.source
    assert report.mismatch is not None
    assert kind is None or report.mismatch.kind == kind
