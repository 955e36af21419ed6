"""Two bugs of one signature, fixed in two releases: the shrunk script must keep the history of the original."""

from __future__ import annotations

import pytest
from running import Tool

pytestmark = pytest.mark.long

# Both flags are wrong on torch 2.8.0; 2.9.0 fixes the first, 2.12.0 the second.
SCRIPT = """\
import torch


def gather(x, rows):
    table = torch.zeros(4, 4)
    table[rows] = x
    return table


def keep(x):
    y = x * 2
    y.detach_()
    return y


@torch.compile(backend="eager")
def step(x, rows):
    table = gather(x, rows)
    kept = keep(x)
    first = table.requires_grad
    second = not kept.requires_grad
    return first, second


x = torch.ones(2, 4, requires_grad=True)
print(step(x, torch.tensor([0, 2])))
"""


def test_the_shrunk_script_has_the_history_of_the_original(tool: Tool) -> None:
    tool.write(SCRIPT)
    # Five builds at once: with less room they would be installed again and again.
    limit = ("--cache-limit", "60GB")
    done = tool.run("run", *limit, "repro.py", "--torch", "2.8.0", "--good", "2.12.0", "--find", "fix")
    assert done.returncode == 0, done.stderr
    fix = tool.report["bisect"]["fix"]
    assert (fix["last_bad"], fix["first_fixed"]) == ("2.11.0", "2.12.0"), done.stderr
    assert tool.report["minimal"]["stands_alone"]
