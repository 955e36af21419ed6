"""What torch.compile leaves behind in the place of a script: the minifier's ``repro.py``, as torch itself writes it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from running import Tool

pytestmark = pytest.mark.torch

# A bug of torch up to 2.15: an in-place operation through a view with gaps changes what the view does not cover.
RECORDED = """
import torch
from torch._dynamo.repro.after_dynamo import generate_dynamo_fx_repro_string

def scale_windows(buf):
    win = buf.unfold(0, 2, 4)
    win.mul_(10)
    return buf + 0

def backend(graph, inputs):
    with open("minifier.py", "w") as file:
        file.write(generate_dynamo_fx_repro_string(graph, inputs, "aot_eager"))
    return graph.forward

torch.compile(scale_windows, backend=backend)(torch.arange(1.0, 11.0))
"""


def recorded(tool: Tool) -> str:
    subprocess.run([sys.executable, tool.write(RECORDED, "record.py")], cwd=tool.folder, check=True, timeout=300)
    return "minifier.py"


@pytest.mark.long
def test_from_the_minifiers_script_to_one_that_stands_alone(tool: Tool) -> None:
    done = tool.run("minimize", recorded(tool), "--torch", "installed")
    assert done.returncode == 0, done.stderr
    report = json.loads((tool.folder / "torchbisect-out/report.json").read_text())
    assert report["localization"]["backend"] == "aot_eager"
    assert report["minimal"]["stands_alone"]
    assert "unfold" in report["minimal"]["source"]
    assert report["minimal"]["lines"] <= 12
    assert report["original"]["name"] == "repro.py"


def test_a_folder_without_graphs(tool: Tool) -> None:
    (tool.folder / "trace").mkdir()
    done = tool.run("check", "trace")
    assert done.returncode == 2
    assert "trace is a folder without graphs of torch.compile" in done.stderr
