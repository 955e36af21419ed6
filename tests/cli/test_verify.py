"""``torchbisect verify`` on a real torch: a patch that breaks one script of two, and what can't be shown."""

from __future__ import annotations

import difflib
import json
from pathlib import Path

import compiling
import pytest
import torch
from running import Tool

pytestmark = pytest.mark.torch

SCRIPT = "import torch\nprint(torch.compile(lambda x: x.{name}(), backend='eager')(torch.ones(3)))\n"
FILE = "torch/_dynamo/backends/debugging.py"
CALL = "    return gm.forward\n"
WRONG = "    if 'sin' in gm.code:\n        return lambda *inputs: [output + 1 for output in gm.forward(*inputs)]\n"
BUILD = "diff --git a/c10/x.h b/c10/x.h\n--- a/c10/x.h\n+++ b/c10/x.h\n@@ -1 +1 @@\n-a\n+b\n"


def planted_diff(file: str = FILE, line: str = CALL, instead: str = WRONG + CALL) -> str:
    """Return a patch of the installed torch; by default it gives wrong numbers for graphs with a sine."""
    old = (Path(torch.__file__).parents[1] / file).read_text().splitlines(keepends=True)
    place = old.index(line)
    new = [*old[:place], *instead.splitlines(keepends=True), *old[place + 1 :]]
    return "".join(difflib.unified_diff(old, new, f"a/{file}", f"b/{file}"))


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


@pytest.mark.long
def test_a_patch_that_fixes_one_script_and_breaks_another(tmp_path: Path) -> None:
    tool = Tool(tmp_path, tmp_path / "cache")
    tool.write(compiling.SCRIPT, "compiling.py")
    good = tool.write(SCRIPT.format(name="cos"), "cos.py")
    tool.write(
        planted_diff(compiling.FILE, compiling.LINE, compiling.LINE.replace("True", "False")) + planted_diff(),
        "both.diff",
    )
    sine = tool.write(SCRIPT.format(name="sin"), "sin.py")
    done = tool.run("verify", "--patch", "both.diff", "--also", sine, "--also", good, "--json", "compiling.py")
    found = json.loads(done.stdout)
    assert [one["effect"] for one in found["scripts"]] == ["fixes it", "causes it", "no effect"], done.stdout
    assert (done.returncode, found["broken"]) == (3, [sine])


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
