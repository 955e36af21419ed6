"""The example, from a user's training script to the release that fixed it."""

from __future__ import annotations

import json
import subprocess
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from running import Tool

from torchbisect.containers.docker.engine import NETWORK_VARIABLE

pytestmark = pytest.mark.e2e

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "covariance_head.py"


# This searches for the fix only; ``make demo`` searches all releases.
WORDS = ("run", "--torch", "2.8.0", "--good", "2.9.0", "--find", "fix")


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Tool:
    """The command after a complete run."""
    tool = Tool(tmp_path_factory.mktemp("example"), cache)
    done = tool.run(*WORDS, str(EXAMPLE))
    assert done.returncode == 0, done.stderr
    return tool


def test_a_complete_run(tool: Tool) -> None:
    report = tool.report
    jsonschema.validate(
        report, json.loads(resources.files("torchbisect.reports.model").joinpath("schema.json").read_text())
    )
    assert report["state"] == "complete"
    assert report["localization"]["backend"] == "eager"
    assert (report["bisect"]["fix"]["last_bad"], report["bisect"]["fix"]["first_fixed"]) == ("2.8.0", "2.9.0")

    minimal = tool.out / "minimal.py"
    assert len(minimal.read_text().splitlines()) <= 10
    assert _status(tool.python("2.8.0"), minimal) != 0
    assert _status(tool.python("2.9.0"), minimal) == 0

    text = (tool.out / "report.md").read_text()
    assert minimal.read_text().strip() in text
    assert str(tool.cache) not in text
    assert str(tool.folder) not in text


@pytest.mark.long
def test_in_containers_the_report_is_the_same(
    tool: Tool, own_image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NETWORK_VARIABLE, "host")
    contained = Tool(tmp_path, tmp_path / "cache")
    done = contained.run(*WORDS, "--sandbox", "docker", "--image", own_image, str(EXAMPLE))
    assert done.returncode == 0, done.stderr
    assert _findings(contained.report) == _findings(tool.report)
    assert (contained.out / "minimal.py").read_text() == (tool.out / "minimal.py").read_text()


def _findings(report: dict[str, Any]) -> dict[str, Any]:
    """Return the findings of a report: everything but times, paths and the platform."""
    picked = {
        "localization": ("backend", "component", "fixed_by", "settings"),
        "minimal": ("bytes", "lines", "nodes", "candidates", "stands_alone"),
    }
    fix = report["bisect"]["fix"]
    return {
        "state": report["state"],
        "torch": report["environment"]["torch"],
        "mismatch": report["mismatch"],
        **{part: {name: report[part][name] for name in names} for part, names in picked.items()},
        "asked": [(one["build"], one["verdict"], one["reason"]) for one in report["bisect"]["tested"]],
        "fix": {name: fix[name] for name in ("last_bad", "first_fixed", "between", "skipped")},
    }


def _status(python: Path, script: Path) -> int:
    """Return the exit status of a script under plain Python."""
    return subprocess.run([python, script], capture_output=True, check=False, timeout=300).returncode
