"""A suite of sixty tests with planted bugs of real releases, from two builds to its groups."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from planted_suite import BOTH, NOT_COMPILED, write_planted_suite
from running import Tool

pytestmark = [pytest.mark.e2e, pytest.mark.long]

# Both bugs were fixed in 2.9.0; ``benchmarks/suite.py`` does it with all four, whose edges take more builds.
BUILDS = ("--bad", "2.8.0", "--good", "2.9.0", "--channel", "release")


def test_the_new_failures_of_a_suite_are_groups_with_their_edges(tool: Tool) -> None:
    write_planted_suite(tool.folder)
    done = tool.run("suite", "pytest tests -q", *BUILDS, "--budget", "60s", timeout=900)
    folder = tool.folder / "torchbisect-suite"
    assert done.returncode == 0, done.stderr
    result = json.loads((folder / "suite.json").read_text())
    groups = {group["tests"][0].rpartition("::")[2].partition("[")[0]: group for group in result["groups"]}
    assert sorted(groups) == ["test_letters", "test_packed"]
    for group in groups.values():
        assert (group["last_bad"], group["first_fixed"], len(group["tests"])) == ("2.8.0", "2.9.0", 2)
        assert (folder / group["report"] / "minimal.py").read_text() == group["minimal"]
    kinds: dict[str, set[str]] = {}
    for test in result["apart"]:
        kinds.setdefault(test["kind"], set()).add(test["name"].rpartition("::")[2].partition("[")[0])
    both = {name.rpartition("::")[2] for name in BOTH}
    assert kinds.pop("not-compiled") == {NOT_COMPILED.rpartition("::")[2]}
    assert kinds.pop("both") == both | {"test_gate", "test_curvature"}
    assert not kinds
    suite = ElementTree.parse(folder / "suite.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("60", "4")
    assert str(tool.folder) not in (folder / "suite.md").read_text()
    again = tool.run("suite", "pytest tests -q", *BUILDS, "--budget", "60s", timeout=300)
    assert again.returncode == 0, again.stderr
    assert json.loads((folder / "suite.json").read_text())["groups"] == result["groups"]


def test_a_suite_that_agrees_on_both_builds_says_so(tool: Tool) -> None:
    (tool.folder / "test_right.py").write_text("def test_right():\n    assert True\n")
    done = tool.run("suite", "pytest -q", "--bad", "2.8.0", "--good", "installed")
    assert done.returncode == 1, done.stderr
    assert "1 tests, no new failure of torch.compile on 2.8.0" in done.stdout


def test_a_suite_that_cannot_be_collected_names_the_file(tool: Tool, tmp_path: Path) -> None:
    (tool.folder / "test_wrong.py").write_text("import nothing_of_this_name\n")
    done = tool.run("suite", "pytest -q", "--bad", "2.8.0", "--good", "installed")
    assert done.returncode == 2
    assert "test_wrong.py" in done.stderr
    assert "nothing_of_this_name" in done.stderr
    assert "--with" in done.stderr
    (tool.folder / "test_wrong.py").unlink()
    done = tool.run("suite", "pytest -q", "--bad", "2.8.0", "--good", "installed")
    assert (done.returncode, "collects no test" in done.stderr) == (2, True), done.stderr
