"""Bounds on time, recompiles and graph breaks, and a test of the user's own, with the installed torch."""

from __future__ import annotations

from pathlib import Path

import pytest
from running import Tool

pytestmark = pytest.mark.torch

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

# The compiled call waits, so that it is slower than eager on any machine.
WAITS = """\
import time
import torch


def backend(graph, inputs):
    def run(*values):
        time.sleep(0.02)
        return graph(*values)

    return run


f = torch.compile(lambda x: x + 1, backend=backend)
for _ in range(5):
    f(torch.ones(2))
"""


def check(tool: Tool, script: str, *words: str, arguments: tuple[str, ...] = (), code: int) -> dict:
    done = tool.run("check", *words, tool.write(script), *arguments)
    assert done.returncode == code, done.stderr
    return tool.report


@pytest.mark.long
def test_slower_than(tool: Tool) -> None:
    found = check(tool, WAITS, "--slower-than", "3", code=0)["mismatch"]
    assert (found["kind"], found["attribute"]) == ("slow", "run time")
    assert "--slower-than 3" in tool.report["command"]


@pytest.mark.long
def test_higher_derivatives_within_their_bounds(tool: Tool) -> None:
    script = (EXAMPLES / "higher_order_derivatives.py").read_text()
    bounds = (
        "--slower-than",
        "100000",
        "--max-compile-time",
        "1000",
        "--max-recompiles",
        "0",
        "--max-graph-breaks",
        "0",
    )
    assert check(tool, script, *bounds, arguments=("grad_of_grad",), code=1)["verdict"] == "none"


@pytest.mark.long
@pytest.mark.parametrize(
    ("form", "bound", "attribute"),
    [
        ("graph_break", "--max-graph-breaks", "graph breaks"),
        ("changing_shapes", "--max-recompiles", "recompiles"),
    ],
)
def test_counted_bounds(tool: Tool, form: str, bound: str, attribute: str) -> None:
    script = (EXAMPLES / "compiled_autograd.py").read_text()
    found = check(tool, script, bound, "0", arguments=(form,), code=0)["mismatch"]
    assert (found["kind"], found["attribute"]) == ("slow", attribute)
    assert found["details"]["reasons"]


# A test of the user's own ---------------------------------------------------------------------------------------------

TEST = """\
set -eu
echo "$TORCHBISECT_TORCH_VERSION" >> {seen}
test -e "$CMAKE_PREFIX_PATH/Torch/TorchConfig.cmake"
test "$(command -v python)" = "$(dirname "$TORCHBISECT_PYTHON")/python"
{end}
"""


@pytest.mark.parametrize(
    ("end", "code", "verdict"),
    [
        ("exit 0", 1, "none"),
        ("echo MISMATCH >&2; exit 3", 0, "mismatch"),
        ("echo no data >&2; exit 125", 6, "untestable"),
    ],
)
def test_the_exit_status_decides(tool: Tool, end: str, code: int, verdict: str) -> None:
    seen = tool.folder / "seen"
    (tool.folder / "test.sh").write_text(TEST.format(seen=seen, end=end))
    done = tool.run("check", "--test", "sh test.sh")
    assert done.returncode == code, done.stderr
    assert tool.report["verdict"] == verdict
    assert tool.report["original"] is None
    assert len(set(seen.read_text().split())) == 1
    assert "Traceback" not in done.stderr
    if verdict == "mismatch":
        assert tool.report["mismatch"]["kind"] == "command"
        assert "--test 'sh test.sh'" in (tool.out / "report.md").read_text()


@pytest.mark.long
def test_a_script_is_shrunk_by_a_test(tool: Tool) -> None:
    """The script needs no torch; the lines that remain are those that make the test fail."""
    script = """\
import sys

scale = 3.0
names = ["one", "two"]


def unused(x):
    return x - 1


def loss(x):
    return sum(x) * scale


print(names, sys.version)
value = loss([1.0, 1.0])
assert value == 5.0, "the loss is off"
"""
    words = ("--test", 'python "$TORCHBISECT_SCRIPT"')
    done = tool.run("minimize", tool.write(script), *words)
    assert done.returncode == 0, done.stderr
    minimal = (tool.out / "minimal.py").read_text()
    assert "unused" not in minimal
    assert "names" not in minimal
    assert "the loss is off" in minimal
    assert tool.report["localization"] is None
    asked = len(tool.asked)
    assert tool.run("minimize", "repro.py", *words).returncode == 0
    assert len(tool.asked) == asked
