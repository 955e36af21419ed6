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


def test_a_script_that_fails_outside_of_what_is_compiled_is_untestable(tool: Tool) -> None:
    done = tool.run(
        "check", tool.write(INSIDE.replace("torch.ones(2, 3)", "torch.ones(9, 3)") + "f(torch.ones(2, 3))\n")
    )
    assert "the script must run without torch.compile" in done.stderr
    assert done.returncode not in (0, 1)
