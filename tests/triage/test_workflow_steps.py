"""The commands of the sample workflow and of the action, run here as a runner runs them, on bodies of issues."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from issue_server import issue, serving
from retold_bodies import RetoldBody, retold_bodies

pytestmark = pytest.mark.slow

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[2]
BODIES = ROOT / "tests" / "triage" / "issues" / "issue_bodies"
BROKEN = """PyTorch version: 2.8.0+cu128

```python
import torch

@torch.compile(backend="eager")
def f(x):
    if torch.compiler.is_compiling():
        return x + 2
    return x + 1

print(f(torch.ones(2)))
```
"""


def steps(place: Path, *path: str) -> dict[str, str]:
    """Return the commands of the named steps at a place in a workflow or action."""
    found: Any = yaml.safe_load(place.read_text(encoding="utf-8"))
    for name in path:
        found = found[name]
    return {step["name"]: step["run"] for step in found["steps"] if "name" in step and "run" in step}


class Runner:
    """A runner's machine: a workspace, the variables that a step gets, and stand-ins for what GitHub installs there.

    ``gh api`` is a ``curl`` of the local server. torchbisect is already installed.
    """

    def __init__(self, folder: Path, api: str) -> None:
        self.workspace, self.output, self.summary = folder / "work", folder / "output", folder / "summary"
        (folder / "bin").mkdir(parents=True)
        self.workspace.mkdir()
        gh = folder / "bin" / "gh"
        gh.write_text(f'#!/bin/sh\nexec curl --silent --fail "{api}/$2"\n')
        gh.chmod(0o755)
        for name in ("venv", "torchbisect"):
            (folder / name).symlink_to(sys.prefix)
        (self.workspace / "torchbisect").symlink_to(ROOT)
        self.event = folder / "event.json"
        self.event.write_text("{}")
        self.variables = os.environ | {
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "RUNNER_TEMP": str(folder),
            "GITHUB_REPOSITORY": "someone/project",
            "GITHUB_API_URL": api,
            "GITHUB_OUTPUT": str(self.output),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GITHUB_EVENT_PATH": str(self.event),
            "NUMBER": "7",
        }

    def run(self, command: str, **variables: str) -> dict[str, str]:
        """Run a step's command, and return its outputs."""
        self.output.write_text("")
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", command],
            env=self.variables | variables,
            cwd=self.workspace,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return dict(line.split("=", 1) for line in self.output.read_text().splitlines())


WORKFLOW, ACTION = ROOT / "examples" / "github" / "bisect-issue.yml", ROOT / "action.yml"
READ = steps(WORKFLOW, "jobs", "read")


def read_issue_on(runner: Runner) -> dict[str, str]:
    runner.run(READ["Fetch the issue"])
    return runner.run(READ["Find the script in the issue"])


@pytest.mark.parametrize("name", ["form-fenced", "details-no-blank", "doctest", "link-only", "crlf", "split-three"])
def test_the_first_job_reads_an_issue(name: str, tmp_path: Path) -> None:
    body = (BODIES / f"{name}.md").read_bytes().decode()
    expect = json.loads(body.partition("\n")[0].removeprefix("<!-- expect: ").removesuffix(" -->"))
    with serving({"someone/project#7": issue(body)}) as api:
        runner = Runner(tmp_path, api)
        outputs = read_issue_on(runner)
    assert outputs["runnable"] == ("false" if expect.get("missing") else "true")
    assert (runner.workspace / "issue" / "repro.py").exists() is not bool(expect.get("missing"))
    assert (runner.workspace / "issue" / "reply.md").read_text().startswith("<!-- torchbisect:report -->")


CHECK = steps(WORKFLOW, "jobs", "bisect")["Check that this is the script of the text that was labelled"]


def test_only_the_text_that_was_labelled_is_run(tmp_path: Path) -> None:
    with serving({"someone/project#7": issue(BROKEN)}) as api:
        runner = Runner(tmp_path, api)
        runner.event.write_text(json.dumps({"action": "labeled", "issue": issue(BROKEN)}))
        outputs = read_issue_on(runner)
        assert outputs["runnable"] == "true"
        assert outputs["digest"] == hashlib.sha256(BROKEN.encode()).hexdigest()
        runner.run(CHECK, DIGEST=outputs["script-digest"])
        (runner.workspace / "issue" / "repro.py").write_text("import os")
        with pytest.raises(AssertionError, match="FAILED"):
            runner.run(CHECK, DIGEST=outputs["script-digest"])


@pytest.mark.parametrize("edited", [BROKEN + " ", BROKEN.replace("x + 2", "x + 3"), ""])
def test_a_text_that_was_edited_after_the_label_is_not_run(edited: str, tmp_path: Path) -> None:
    with serving({"someone/project#7": issue(edited)}) as api:
        runner = Runner(tmp_path, api)
        runner.event.write_text(json.dumps({"action": "labeled", "issue": issue(BROKEN)}))
        outputs = read_issue_on(runner)
    assert outputs["runnable"] == "false"
    assert outputs["script-digest"] == ""
    assert not (runner.workspace / "issue" / "repro.py").exists()
    assert "edited after it was labelled" in (runner.workspace / "issue" / "reply.md").read_text()


@pytest.mark.long
@pytest.mark.parametrize("one", retold_bodies()[::4], ids=lambda one: one.name)
def test_the_first_job_reads_issues_in_every_style(one: RetoldBody, tmp_path: Path) -> None:
    with serving({"someone/project#7": issue(one.body, one.title)}) as api:
        runner = Runner(tmp_path, api)
        outputs = read_issue_on(runner)
    assert outputs["runnable"] == ("false" if "missing" in one.expect else "true")
    assert outputs["torch"] == (one.expect["torch"] or "")
    assert outputs["device"] == one.expect.get("device", "cpu")
    script = runner.workspace / "issue" / "repro.py"
    if script.exists():
        compile(script.read_text(), "repro.py", "exec")


@pytest.mark.torch
@pytest.mark.long
def test_the_action_runs_the_script_that_the_first_job_found(tmp_path: Path) -> None:
    """The repository around it is another one: nothing of torchbisect is there."""
    with serving({"someone/project#7": issue(BROKEN)}) as api:
        runner = Runner(tmp_path, api)
        assert read_issue_on(runner)["runnable"] == "true"
        outputs = runner.run(
            steps(ACTION, "runs")["Run torchbisect"],
            SCRIPT="issue/repro.py",
            TORCH="installed",
            SANDBOX="venv",
            CACHE_DIR=str(tmp_path / "cache"),
            ARGUMENTS="--no-bisect --no-minimize",
            OUT="report",
        )
    assert outputs["verdict"] == "mismatch"
    assert (runner.workspace / "report" / "report.json").is_file()
    assert "torch.compile" in runner.summary.read_text()
