"""A number that became worse is bisected over an index of wheels; only torch itself is a small package."""

from __future__ import annotations

from pathlib import Path

import pytest
from running import Tool
from wheel_tree import WheelTree, with_requirements

pytestmark = pytest.mark.long

TORCH = """
__version__ = {version!r}
COST, SPEED = {cost}, {speed}


class version:
    git_version = {version!r}
    cuda = None


def work():
    total = 0
    for number in range(int(20000 * COST)):
        total += number
    return total
"""
#: The first of ten releases with each planted change: another build for each.
SLOWER, FEWER = 7, 9


@pytest.fixture
def index(tmp_path: Path) -> str:
    """Return the address of an index with the releases 2.1.0 to 2.10.0."""
    tree = with_requirements(WheelTree(tmp_path / "index"))
    for number in range(1, 11):
        version = f"2.{number}.0"
        cost, speed = (1.3 if number >= SLOWER else 1.0), (70 if number >= FEWER else 100)
        tree.add("torch", version, source=TORCH.format(version=version, cost=cost, speed=speed))
    return tree.url


@pytest.mark.parametrize(
    ("measure", "worse_by", "script", "first"),
    [
        ("metric:speed", "0.8", "import torch\nprint('speed =', torch.SPEED)\n", FEWER),
        ("time", "1.15", "import torch\n\n\ndef benchmark():\n    torch.work()\n", SLOWER),
    ],
)
def test_the_build_is_named(tool: Tool, index: str, measure: str, worse_by: str, script: str, first: int) -> None:
    script = tool.write(script)
    words = ("--index-url", index, "--torch", "2.10.0", "--against", "2.1.0", "--find", "regression")
    done = tool.run("bisect", *words, "--measure", measure, "--worse-by", worse_by, script)
    assert done.returncode == 0, done.stderr
    report = tool.report
    regression, measured = report["bisect"]["regression"], report["measurement"]
    assert [regression["last_good"], regression["first_bad"]] == [f"2.{first - 1}.0", f"2.{first}.0"], done.stderr
    assert (measured["against"], measured["shape"]) == ("2.1.0", "step")
    answers = {row["build"]: row["answer"] for row in measured["builds"]}
    assert answers["2.1.0"] == "not-worse"
    assert answers["2.10.0"] == "worse"
    assert list(answers) == sorted(answers, key=lambda name: int(name.split(".")[1]))
    assert f"2.{first}.0" in (tool.out / "report.html").read_text()

    asked = len(tool.asked)
    assert tool.run("bisect", *words, "--measure", measure, "--worse-by", worse_by, script).returncode == 0
    assert len(tool.asked) == asked, "nothing is measured twice"


def test_a_build_that_is_not_worse(tool: Tool, index: str) -> None:
    script = tool.write("import torch\nprint('speed =', torch.SPEED)\n")
    words = ("--index-url", index, "--torch", "2.3.0", "--against", "2.1.0", "--measure", "metric:speed")
    done = tool.run("check", *words, "--worse-by", "0.8", script)
    assert done.returncode == 1, done.stderr
    assert "metric:speed: 100 where torch 2.1.0 has 100" in done.stdout
