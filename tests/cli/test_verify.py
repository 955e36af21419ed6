"""``torchbisect verify`` on a real torch: a patch that breaks one script of two, and what can't be shown."""

from __future__ import annotations

import difflib
import json
import sysconfig
from pathlib import Path

import compiling
import pytest
import torch
from planted import planted
from pytorch_clone import Clone
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


#: Installs the torch of the tests; its C++ header stands for what compiled code does.
BUILD_PROGRAM = """
import os, pathlib, site, subprocess, sys
here, place = pathlib.Path({here!r}), pathlib.Path(site.getsitepackages()[0])
subprocess.run(["rm", "-rf", str(place / "torch")], check=True)
for name in ("torch", {info!r}):
    subprocess.run(["cp", "-al", str(here / name), str(place / name)], check=True)
(place / "rest.pth").write_text(f"{{here}}\\n")
def rewrite(name, change):
    text = change((place / name).read_text())
    (place / name).unlink()
    (place / name).write_text(text)
rewrite("torch/version.py", lambda text: text + "\\ngit_version = %r\\n" % os.environ["TORCHBISECT_COMMIT"])
if "fixed" in pathlib.Path("c10/x.h").read_text():
    rewrite({file!r}, lambda text: text.replace({line!r}, {fixed!r}))
print("built", file=sys.stderr)
"""


@pytest.mark.long
def test_a_patch_of_compiled_code_is_built_without_it_and_with_it(tmp_path: Path) -> None:
    """The commit of the torch is built twice in one work tree, and a second patch meets a clean tree."""
    (tmp_path / "pytorch").mkdir()
    clone = Clone(tmp_path / "pytorch")
    clone.git("init", "-q", "-b", "main")
    commit = clone.commit("Base", {"c10/x.h": "a\n"})
    here = Path(sysconfig.get_path("purelib"))
    (tmp_path / "build.py").write_text(
        BUILD_PROGRAM.format(
            here=str(here),
            info=next(here.glob("torch-*.dist-info")).name,
            file=compiling.FILE,
            line=compiling.LINE,
            fixed=compiling.LINE.replace("True", "False"),
        )
    )
    python = planted(tmp_path / "python", "2.13.8", commit=commit)
    tool = Tool(tmp_path, tmp_path / "cache")
    script = tool.write(compiling.SCRIPT)
    tool.write(BUILD.replace("+b", "+fixed") + BUILD.replace("c10/x.h", "test/x.py"), "fix.diff")
    tool.write(BUILD.replace("-a", "-other"), "unfit.diff")
    tool.write(BUILD, "nothing.diff")
    clone.commit("The tree of the patch", {"test/x.py": "a\n"})
    words = ("--python", str(python), "--torch", "installed", "--git", str(clone.path))
    build = ("--build-cmd", f"python {tmp_path / 'build.py'}")

    done = tool.run("verify", *words, "--patch", "fix.diff", script)
    assert (done.returncode, "--build-cmd" in done.stdout) == (6, True), done.stderr
    # The patch is of a newer commit: it has a file that the torch's commit lacks.
    done = tool.run("verify", *words, *build, "--patch", "fix.diff", script)
    assert (done.returncode, "does not apply" in done.stdout) == (6, True), done.stderr
    tool.write(BUILD.replace("+b", "+fixed"), "fix.diff")
    done = tool.run("verify", *words, *build, "--patch", "fix.diff", "--json", script)
    found = json.loads(done.stdout)
    assert (done.returncode, found["files"]) == (0, ["c10/x.h"]), done.stderr
    assert [one["effect"] for one in found["scripts"]] == ["fixes it"], done.stdout
    for patch, effect in (("unfit.diff", None), ("nothing.diff", "no effect")):
        done = tool.run("verify", *words, *build, "--patch", patch, "--json", script)
        found = json.loads(done.stdout)
        assert [one["effect"] for one in found["scripts"]] == ([effect] if effect else []), done.stdout
        assert done.returncode == (1 if effect else 6)


@pytest.mark.long
def test_the_minimal_script_and_the_original_of_a_report_are_asked(tmp_path: Path) -> None:
    tool = Tool(tmp_path, tmp_path / "cache")
    tool.write(compiling.SCRIPT, "compiling.py")
    assert tool.run("minimize", "compiling.py").returncode == 0
    tool.write(planted_diff(compiling.FILE, compiling.LINE, compiling.LINE.replace("True", "False")), "fix.diff")
    done = tool.run("verify", "--torch", "installed", "--patch", "fix.diff", "torchbisect-out")
    assert done.returncode == 0, done.stderr
    assert "compiling.py (the original)" in done.stdout
    assert done.stdout.count("fixes it") == 2, done.stdout
    assert f"applied to: {compiling.FILE}" in done.stdout
