"""The main job on the example, from a user's training script to the release that mended it."""

from __future__ import annotations

import json
import subprocess
from importlib import resources
from pathlib import Path

import jsonschema
import pytest
from running import Tool

pytestmark = pytest.mark.e2e

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "covariance_head.py"


def test_the_whole_way(tool: Tool) -> None:
    """Towards the fix only: going back through all releases is what ``make demo`` does."""
    done = tool.run("run", str(EXAMPLE), "--torch", "2.8.0", "--good", "2.9.0", "--find", "fix")
    assert done.returncode == 0, done.stderr

    report = tool.report
    jsonschema.validate(report, json.loads(resources.files("torchbisect.reports").joinpath("schema.json").read_text()))
    assert report["state"] == "complete"
    assert report["localisation"]["backend"] == "eager"
    assert (report["bisect"]["fix"]["last_bad"], report["bisect"]["fix"]["first_fixed"]) == ("2.8.0", "2.9.0")

    minimal = tool.out / "minimal.py"
    assert len(minimal.read_text().splitlines()) <= 10
    assert _status(tool.python("2.8.0"), minimal) != 0
    assert _status(tool.python("2.9.0"), minimal) == 0

    text = (tool.out / "report.md").read_text()
    assert minimal.read_text().strip() in text
    assert str(tool.cache) not in text
    assert str(tool.folder) not in text


def _status(python: Path, script: Path) -> int:
    """Under plain Python, with nothing of torchbisect's."""
    return subprocess.run([python, script], capture_output=True, check=False, timeout=300).returncode
