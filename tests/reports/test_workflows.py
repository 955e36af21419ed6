"""``action.yml`` and the workflow, by the schemas and the auditor that GitHub's users check theirs with."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from torchbisect.reports import actions

ROOT = Path(__file__).parents[2]
ACTION, WORKFLOW = ROOT / "action.yml", ROOT / ".github" / "workflows" / "bisect-issue.yml"


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ("vendor.github-actions", ACTION),
        ("vendor.github-workflows", WORKFLOW),
        ("custom.github-workflows-require-timeout", WORKFLOW),
    ],
)
@pytest.mark.skipif(not importlib.util.find_spec("check_jsonschema"), reason="check-jsonschema is not installed")
def test_schemas(schema: str, path: Path) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


ZIZMOR = shutil.which("zizmor", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")


@pytest.mark.skipif(not ZIZMOR, reason="zizmor is not installed")
def test_the_auditor_finds_nothing() -> None:
    command = [str(ZIZMOR), "--offline", "--persona=auditor", str(ACTION), str(WORKFLOW)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", [ACTION, WORKFLOW], ids=lambda path: path.name)
def test_what_the_steps_call_is_there(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    called = {
        line.split("torchbisect.reports.actions ")[1].split()[0] for line in text.splitlines() if ".actions " in line
    }
    assert called
    assert called <= set(actions.main.commands)


def test_the_shell_of_the_action(tmp_path: Path) -> None:
    """The composite action's own script, run by a real shell with a torchbisect that tells what it was given."""
    lines = ACTION.read_text(encoding="utf-8").split("      run: |\n")[2].split("\n")
    script = "\n".join(line.removeprefix("        ") for line in lines)
    place = tmp_path / "torchbisect" / "bin"
    place.mkdir(parents=True)
    for name, text in (("torchbisect", 'printf "%s\\n" "$@" > "$RUNNER_TEMP/given"; exit 3'), ("python", "exit 0")):
        (place / name).write_text(f"#!/bin/sh\n{text}\n")
        (place / name).chmod(0o755)
    hostile = "a b;touch pwned $(touch pwned)"
    environment = {
        "RUNNER_TEMP": str(tmp_path),
        "PATH": os.environ["PATH"],
        "SCRIPT": hostile,
        "TORCH": "2.8.0",
        "PACKAGES": "numpy einops",
        "SANDBOX": "docker",
        "SECONDS_EACH": "",
        "OUT": "out",
    }
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script], env=environment, cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    given = (tmp_path / "given").read_text().splitlines()
    assert given == [
        "run",
        "--sandbox",
        "docker",
        "--out",
        "out",
        "--torch",
        "2.8.0",
        "--with",
        "numpy",
        "--with",
        "einops",
        hostile,
    ]
    assert not (tmp_path / "pwned").exists()
