"""Scripts that can't be bisected: each gets one clear line and the right exit code, and none hangs."""

from __future__ import annotations

import json
import signal

import pytest
from running import Tool

pytestmark = pytest.mark.torch

COMPILED = "import torch\nf = torch.compile(lambda x: x + 1, backend='eager')\nf(torch.ones(1))\n"

CASES = {
    "fails in eager too": (COMPILED + "raise ValueError('mine')\n", "mine"),
    "never compiles": ("import torch\nprint(torch.ones(1) + 1)\n", "torch.compile"),
    "needs a package": ("import nosuchpackage\n" + COMPILED, "pip install nosuchpackage"),
    "reads standard input": (COMPILED + "name = input()\n", "standard input"),
    "never ends": (COMPILED + "while True:\n    pass\n", "--timeout"),
    "forks without end": (COMPILED + "import os\nwhile True:\n    os.fork()\n", "torchbisect: repro.py"),
    "lacks an argument": (
        "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--n', required=True)\n"
        "parser.parse_args()\n" + COMPILED,
        "error: the following arguments are required: --n",
    ),
    "lacks a GPU": ("import sys\nimport torch\nsys.exit('CUDA is required')\n" + COMPILED, "needs a GPU"),
    "exits with a status of its own": (COMPILED + "import sys\nsys.exit(3)\n", "status 3"),
}


SLOW = ("never ends", "forks without end", "lacks a GPU", "reads standard input", "exits with a status of its own")


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.long] * (name in SLOW)) for name in CASES])
def test_an_untestable_script(name: str, tool: Tool) -> None:
    script, said = CASES[name]
    done = tool.run("check", tool.write(script), "--timeout", "8")
    assert done.returncode == 6, done.stderr
    assert not [line for line in done.stderr.splitlines() if line.startswith("Traceback")]
    assert said in done.stderr
    assert "never calls" not in done.stderr or name == "never compiles"
    assert tool.report["verdict"] == "untestable"


@pytest.mark.parametrize(
    "end",
    [
        "import sys\nsys.exit(0)\n",
        pytest.param("for _ in range(1000):\n    print('x' * 1_000_000)\n", marks=pytest.mark.long),
    ],
)
def test_a_script_that_agrees(tool: Tool, end: str) -> None:
    """The script may also call ``sys.exit``, or print a gigabyte."""
    done = tool.run("check", tool.write(COMPILED + end))
    assert done.returncode == 1, done.stderr
    assert "agree" in done.stdout


@pytest.mark.long
def test_json_is_the_only_text_on_standard_output(tool: Tool) -> None:
    done = tool.run("check", tool.write(COMPILED), "--json")
    report = json.loads(done.stdout)
    assert (report["schema"], report["verdict"], report["mismatch"]) == (1, "none", None)


def test_arguments_reach_the_script(tool: Tool) -> None:
    script = COMPILED + "import sys\nassert sys.argv[1:] == ['--epochs', '3'], sys.argv\n"
    assert tool.run("check", tool.write(script), "--", "--epochs", "3").returncode == 1


@pytest.mark.long
def test_a_flaky_script_is_reported_as_flaky(tool: Tool) -> None:
    """The backend is wrong every other time; it counts in a file outside of the script's folder."""
    counter = tool.folder / "counter"
    script = f"""
import torch


def backend(graph, inputs):
    with open({str(counter)!r}, "a+") as file:
        file.write("x")
        file.seek(0)
        wrong = len(file.read()) % 2
    return (lambda *values: [value + 1 for value in graph(*values)]) if wrong else graph.forward


print(torch.compile(lambda x: x * 2, backend=backend)(torch.ones(3)))
"""
    done = tool.run("check", tool.write(script), "--repeat", "4")
    assert done.returncode == 4, done.stderr


def test_interrupted_while_observing(tool: Tool) -> None:
    tool.write(COMPILED + "import time\ntime.sleep(60)\n")
    status, _ = tool.stopped("check", "repro.py", at=lambda line: "Observe" in line, by=signal.SIGINT)
    assert status == 130
    assert tool.report["state"] == "interrupted"
