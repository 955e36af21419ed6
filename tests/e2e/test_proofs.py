"""A commit is proven by what a build does without it, or with it, also where the commits themselves can't be asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from proving import searched
from pytorch_clone import CULPRIT
from running import Tool

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "reports" / "examples" / "covariance_head" / "minimal.py"
PATCH = ROOT / "tests" / "e2e" / "patches" / "setitem_requires_grad.diff"


def test_our_own_patch_of_the_example_makes_its_bug_pass(tool: Tool) -> None:
    """The shrunk script of the example fails on 2.8.0; upstream fixed it otherwise in 2.9.0."""
    words = ("--torch", "2.8.0", "--patch", str(PATCH), "--json", str(EXAMPLE))
    found = json.loads(tool.run("verify", *words).stdout)
    assert [one["effect"] for one in found["scripts"]] == ["fixes it"], found
    assert "on torch 2.8.0 makes it pass" in found["summary"]


def test_a_fix_is_applied_to_the_last_bad_build(tmp_path: Path) -> None:
    tool = Tool(tmp_path, tmp_path / "cache")
    clone, found = searched(tool, fix=True, repaired=CULPRIT - 1)
    (proof,) = found["proofs"]
    assert found["commit"] == proof["commit"] == clone.culprit
    assert (proof["build"], proof["reverted"], proof["passes"]) == (found["last_bad"], False, True)
    assert "Applying [" in (tool.out / "report.md").read_text()


def test_an_open_range_is_resolved_by_reverting_its_suspects(tmp_path: Path) -> None:
    """Three commits can't be imported, the culprit among them; without its change the first bad build passes."""
    tool = Tool(tmp_path, tmp_path / "cache")
    clone, found = searched(tool, fix=False, repaired=CULPRIT + 1)
    assert found["commit"] == clone.culprit
    (proof,) = found["proofs"]
    assert (proof["commit"], proof["reverted"], proof["passes"]) == (clone.culprit, True, True)
    assert found["suspects"][0]["reasons"] == ["its change alone makes a build with the bug pass"]
    assert "makes it pass" in (tool.out / "report.html").read_text()
