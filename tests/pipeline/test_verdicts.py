"""Verdicts of ``torchbisect check`` on scripts that raise in both runs, on the installed torch."""

from __future__ import annotations

import pytest
from running import Tool

pytestmark = [pytest.mark.torch, pytest.mark.slow]

INSIDE = "import torch\ndef f(x):\n    return x.index_select(0, torch.tensor([5]))\n"
INSIDE += "torch.compile(f, backend='eager')(torch.ones(2, 3))\n"


def test_compiled_code_that_raises_what_eager_code_raises_agrees(tool: Tool) -> None:
    done = tool.run("check", tool.write(INSIDE))
    assert done.returncode == 1, done.stderr
    assert "as eager does" in done.stdout
    assert "IndexError: index out of range in self" in done.stdout


SHAPES = "import torch\nf = torch.compile(lambda x: x @ x, backend='eager')\n"


@pytest.mark.parametrize(
    "rest", ["f(torch.ones(2, 3))\n", "try:\n    f(torch.ones(2, 3))\nexcept RuntimeError:\n    pass\n"]
)
def test_the_same_exception_in_other_words_agrees_caught_or_not(tool: Tool, rest: str) -> None:
    done = tool.run("check", tool.write(SHAPES + rest))
    assert done.returncode == 1, done.stdout


REFUSES = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--output", default="out")
print(parser.parse_args())
"""


def test_an_option_after_a_script_that_refuses_it(tool: Tool) -> None:
    done = tool.run("check", tool.write(REFUSES), "--json-lines", "--jobs", "2", "--out", "X")
    assert done.returncode == 6
    assert "--jobs is an option of torchbisect: type it before repro.py" in " ".join(done.stdout.split())


def test_a_script_that_fails_outside_of_what_is_compiled_is_untestable(tool: Tool) -> None:
    done = tool.run(
        "check", tool.write(INSIDE.replace("torch.ones(2, 3)", "torch.ones(9, 3)") + "f(torch.ones(2, 3))\n")
    )
    assert "the script must run without torch.compile" in done.stderr
    assert done.returncode not in (0, 1)
