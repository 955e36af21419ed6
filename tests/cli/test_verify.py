"""``torchbisect verify`` on a real torch: a patch that breaks one script of two, and what can't be shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from running import Tool

pytestmark = pytest.mark.torch

SCRIPT = "import torch\nprint(torch.compile(lambda x: x.{name}(), backend='eager')(torch.ones(3)))\n"
FILE = "torch/_dynamo/backends/debugging.py"
CALL = "    return gm.forward\n"
WRONG = "    if 'sin' in gm.code:\n        return lambda *inputs: [output + 1 for output in gm.forward(*inputs)]\n"
BUILD = "diff --git a/c10/x.h b/c10/x.h\n--- a/c10/x.h\n+++ b/c10/x.h\n@@ -1 +1 @@\n-a\n+b\n"


def planted_diff() -> str:
    """Return a patch that gives wrong numbers for graphs with a sine."""
    lines = (Path(torch.__file__).parents[1] / FILE).read_text().splitlines(keepends=True)
    place = lines.index(CALL)
    before, after = lines[place - 3 : place], lines[place : place + 3]
    body = "".join([" " + line for line in before] + ["+" + line for line in WRONG.splitlines(keepends=True)])
    body += "".join(" " + line for line in after)
    old, added = len(before) + len(after), WRONG.count("\n")
    return f"--- a/{FILE}\n+++ b/{FILE}\n@@ -{place - 2},{old} +{place - 2},{old + added} @@\n{body}"


@pytest.mark.long
def test_a_patch_that_breaks_one_script_of_two(tmp_path: Path) -> None:
    tool = Tool(tmp_path, tmp_path / "cache")
    tool.write(planted_diff(), "break.diff")
    good, bad = tool.write(SCRIPT.format(name="cos"), "cos.py"), tool.write(SCRIPT.format(name="sin"), "sin.py")
    done = tool.run("verify", "--patch", "break.diff", "--also", bad, "--json", good)
    found = json.loads(done.stdout)
    assert [one["effect"] for one in found["scripts"]] == ["no effect", "causes it"], done.stdout
    assert (done.returncode, found["broken"], found["files"]) == (3, [bad], [FILE])
    assert "breaks sin.py" in found["summary"]


@pytest.mark.parametrize(
    ("patch", "words"),
    [(BUILD, "compiled code"), (planted_diff().replace("gm.forward", "gm.backward"), "does not apply")],
)
def test_what_a_wheel_cannot_show(tmp_path: Path, patch: str, words: str) -> None:
    tool = Tool(tmp_path, tmp_path / "cache")
    tool.write(patch, "fix.diff")
    done = tool.run("verify", "--patch", "fix.diff", tool.write(SCRIPT.format(name="cos")))
    assert done.returncode == 6
    assert words in done.stdout
