"""A number that became worse is bisected over an index of wheels; only torch itself is a small package."""

from __future__ import annotations

import shlex
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


def test_a_run_of_the_users_own_test(tool: Tool, index: str) -> None:
    tool.write("import torch\nprint('speed =', torch.SPEED)\n")
    builds = ("--index-url", index, "--torch", "2.10.0", "--against", "2.1.0", "--find", "regression")
    numbers = ("--measure", "metric:speed", "--worse-by", "0.8")
    done = tool.run("run", *builds, *numbers, "--test", "python repro.py")
    assert done.returncode == 0, done.stdout + done.stderr
    regression = tool.report["bisect"]["regression"]
    assert [regression["last_good"], regression["first_bad"]] == [f"2.{FEWER - 1}.0", f"2.{FEWER}.0"], done.stderr
    assert tool.report["measurement"]["measure"] == "metric:speed"


CLUTTER = """
import argparse
import math
import torch


class Settings:
    def __init__(self, rounds, name="table"):
        self.rounds, self.name = rounds, name


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


def prepare(settings):
    table = []
    for number in range(settings.rounds):
        table.append(math.sqrt(number) + 1)
    return table


settings = Settings(parse().rounds)
values = prepare(settings)
print("prepared", settings.name, len(values))
"""
BENCHMARK = """

def benchmark():
    first = sum(range(100))
    result = torch.work()
    mean = sum(values) / max(1, len(values))
    return first + result + mean
"""


@pytest.mark.parametrize(
    ("measure", "worse_by", "script", "first", "kept"),
    [
        ("metric:speed", "0.8", "print('speed =', torch.SPEED * len(values))\n", FEWER, "torch.SPEED"),
        ("time", "1.15", BENCHMARK, SLOWER, "def benchmark():"),
    ],
)
def test_a_run_shrinks_the_script_and_names_the_build(
    tool: Tool, index: str, measure: str, worse_by: str, script: str, first: int, kept: str
) -> None:
    script = tool.write(CLUTTER + script)
    numbers = ("--measure", measure, "--worse-by", worse_by)
    words = ("--index-url", index, "--torch", "2.10.0", "--against", "2.1.0", *numbers, "--find", "regression", script)
    done = tool.run("run", *words)
    assert done.returncode == 0, done.stderr
    report, minimal = tool.report, (tool.out / "minimal.py").read_text()
    assert kept in minimal
    assert len(minimal.split()) <= 12, minimal
    assert report["minimal"]["source"] == minimal
    regression = report["bisect"]["regression"]
    assert [regression["last_good"], regression["first_bad"]] == [f"2.{first - 1}.0", f"2.{first}.0"], done.stderr
    assert report["measurement"]["how"][0] == "The builds were asked with the minimal script."
    answers = {row["build"]: row["answer"] for row in report["measurement"]["builds"]}
    assert (answers["2.1.0"], answers["2.10.0"]) == ("not-worse", "worse")

    asked = len(tool.asked)
    assert tool.run("run", *words).returncode == 0
    assert len(tool.asked) == asked, "nothing is measured twice"

    command = shlex.split(report["minimal"]["command"])
    assert command[:2] == ["torchbisect", "check"]
    (tool.folder / "minimal.py").write_text(minimal)
    # A report has no path of this machine, so the index is named again.
    again = tool.run("check", *command[2:-1], "--index-url", index, "--out", "again", command[-1])
    assert again.returncode == 0, again.stderr
