"""The script of an issue, and the list of what is missing: from a file, and from a server with GitHub's API."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner

from torchbisect.cli.main import main

BODY = """### 🐛 Describe the bug

This is wrong on 2.8.0:

```python
import torch
import einops

@torch.compile
def f(x):
    return einops.rearrange(x, "a b -> b a") + 1

print(f(torch.ones(2, 3)))
```

### Versions

PyTorch version: 2.8.0+cu128
Python version: 3.11.7
"""


def issue(body: str) -> dict[str, object]:
    return {"number": 7, "title": "wrong result", "body": body, "user": {"login": "someone"}, "html_url": "https://x/7"}


def read(folder: Path, *words: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["issue", *words, "--out", str(folder / "out")])
    assert "Traceback" not in result.output
    return result.exit_code, result.output


def test_a_script_is_found_and_its_command_is_printed(tmp_path: Path) -> None:
    (tmp_path / "issue.json").write_text(json.dumps(issue(BODY)))
    code, output = read(tmp_path, "--file", str(tmp_path / "issue.json"))
    assert code == 0, output
    compile((tmp_path / "out" / "repro.py").read_text(), "repro.py", "exec")
    assert "--torch 2.8.0" in output
    assert "--with einops" in output


def test_what_is_missing_is_listed(tmp_path: Path) -> None:
    (tmp_path / "issue.json").write_text(json.dumps(issue("torch.compile is wrong, please fix it")))
    code, output = read(tmp_path, "--file", str(tmp_path / "issue.json"))
    assert code == 2
    assert "missing:" in output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("text", ["", "[]", "{}", "no json"])
def test_a_file_that_is_no_issue(tmp_path: Path, text: str) -> None:
    (tmp_path / "issue.json").write_text(text)
    assert read(tmp_path, "--file", str(tmp_path / "issue.json"))[0] == 2


def test_neither_file_nor_reference(tmp_path: Path) -> None:
    code, output = read(tmp_path)
    assert code == 2
    assert "OWNER/REPO#N" in output


@pytest.fixture
def github(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A server on loopback with one issue."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = self.path == "/repos/someone/project/issues/7"
            text = json.dumps(issue(BODY) if found else {"message": "Not Found"}).encode()
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("GITHUB_API_URL", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    yield
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.usefixtures("github")
def test_an_issue_is_read_from_github(tmp_path: Path) -> None:
    code, output = read(tmp_path, "someone/project#7")
    assert code == 0, output
    assert (tmp_path / "out" / "repro.py").exists()


@pytest.mark.usefixtures("github")
def test_an_issue_that_does_not_exist(tmp_path: Path) -> None:
    code, output = read(tmp_path, "someone/project#8")
    assert code == 2
    assert "someone/project#8" in output
