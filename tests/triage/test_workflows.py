"""``action.yml`` and the sample workflow, checked with public schemas and an auditor."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from torchbisect.triage import github_actions

ROOT = Path(__file__).parents[2]
ACTION, WORKFLOW = ROOT / "action.yml", ROOT / "examples" / "github" / "bisect-issue.yml"


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
def test_the_commands_of_the_steps_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    called = set(re.findall(r"torchbisect\.triage\.github_actions (\w+)", text))
    assert called
    assert called <= set(github_actions.main.commands)


@pytest.mark.long
def test_the_shell_script_of_the_action_quotes_its_inputs(tmp_path: Path) -> None:
    """The action's shell script passes each input to torchbisect as one argument."""
    lines = ACTION.read_text(encoding="utf-8").split("      run: |\n")[2].split("\n")
    script = "\n".join(line.removeprefix("        ") for line in lines)
    (tmp_path / "torchbisect").symlink_to(sys.prefix)
    hostile = "a b;touch pwned $(touch pwned)`touch pwned`.py"
    environment = {
        "RUNNER_TEMP": str(tmp_path),
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "SCRIPT": hostile,
        "TORCH": "2.8.0",
        "PACKAGES": "numpy einops",
        "SANDBOX": "venv",
        "SECONDS_EACH": "",
        "OUT": "out",
    }
    command = ["bash", "-eo", "pipefail", "-c", script]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert hostile in done.stderr
    assert not (tmp_path / "pwned").exists()
