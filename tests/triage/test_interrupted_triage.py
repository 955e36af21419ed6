"""An interrupted triage says how it goes on."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

BODY = "```python\nimport time, torch\ntime.sleep(40)\nprint(torch.compile(torch.sin)(torch.ones(1)))\n```"


@pytest.mark.torch
@pytest.mark.long
def test_an_interrupted_triage_says_how_it_goes_on(tmp_path: Path) -> None:
    (tmp_path / "issues.jsonl").write_text(json.dumps({"number": 1, "title": "t", "body": BODY}))
    words = [sys.executable, "-m", "torchbisect", "triage", "--torch", "installed", "issues.jsonl"]
    command = [*words, "--out", "out", "--cache-dir", "cache"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as run:
        assert run.stderr is not None
        said = ""
        while "1 to run" not in said:
            said += run.stderr.readline()
        run.send_signal(signal.SIGINT)
        said += run.stderr.read()
    assert run.returncode == 130
    assert "give the same command again, and it continues" in said
