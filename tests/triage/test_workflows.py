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

from torchbisect.containers.venv.installer import find_uv
from torchbisect.triage import github_actions

ROOT = Path(__file__).parents[2]
ACTION, WORKFLOW = ROOT / "action.yml", ROOT / "examples" / "github" / "bisect-issue.yml"


@pytest.mark.slow
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
    called = set(re.findall(r"(?:torchbisect\.triage\.github_actions|steps\.py)[\s\\]+(\w+)", text))
    assert called
    assert called <= set(github_actions.main.commands)


REQUIREMENTS = ROOT / "examples" / "github" / "requirements.txt"


@pytest.mark.slow
def test_all_that_the_writing_job_installs_is_pinned_with_hashes() -> None:
    listed = re.split(r"\n(?=[a-z])", re.sub(r"^#.*\n", "", REQUIREMENTS.read_text(), flags=re.MULTILINE))
    pins = {line.split("==")[0]: line.split("==")[1].split()[0] for line in listed}
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", line) for line in listed)
    constraints = (ROOT / "constraints.txt").read_text().lower()
    assert [name for name, version in pins.items() if f"{name}=={version}" not in constraints.replace("_", "-")] == []
    code = (
        "import sys, torchbisect.triage.github_actions, importlib.metadata as m\n"
        "known = m.packages_distributions()\n"
        "print(*{d for name in sys.modules for d in known.get(name.split('.')[0], ())})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    # httpx has a command line of its own, which imports these where they are installed.
    optional = {"rich", "pygments", "setuptools", "torchbisect"}
    assert {name.lower() for name in done.stdout.split()} - optional <= set(pins)
    text = WORKFLOW.read_text(encoding="utf-8")
    assert text.count("--require-hashes") == text.count("pip install") == 2


@pytest.mark.long
def test_the_steps_run_with_only_what_is_pinned(tmp_path: Path) -> None:
    """In a new environment, from a package index."""
    python = str(tmp_path / "venv" / "bin" / "python")
    words = ["--no-deps", "--only-binary", ":all:", "--require-hashes", "--requirement", str(REQUIREMENTS)]
    (tmp_path / "issue.json").write_text('{"number": 1, "body": "```python\\nimport torch\\n```"}')
    steps = str(REQUIREMENTS.with_name("steps.py"))
    for command in (
        [sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")],
        [find_uv(), "pip", "install", "--quiet", "--python", python, *words],
        [python, steps, "read", str(tmp_path / "issue.json"), str(tmp_path / "out")],
    ):
        clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=clean)
        assert done.returncode == 0, done.stderr
    assert "runnable: false" in done.stdout


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
