"""The script of an issue, and the list of what is missing: from a file, and from a server with GitHub's API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from issue_server import issue, serving

from torchbisect.cli.commands import main

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


def read(folder: Path, *words: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["issue", *words, "--out", str(folder / "out")])
    assert "Traceback" not in result.output
    return result.exit_code, result.output


def test_a_script_is_found_and_its_command_is_printed(tmp_path: Path) -> None:
    (tmp_path / "issue.json").write_text(json.dumps(issue(BODY)))
    code, output = read(tmp_path, "--file", str(tmp_path / "issue.json"))
    assert code == 0, output
    compile((tmp_path / "out" / "repro.py").read_text(), "repro.py", "exec")
    assert "--torch 2.8.0+cu128 --nearest" in output
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


API = issue(BODY)
GH = {"title": "wrong result", "body": BODY, "url": "https://github.com/someone/project/issues/7"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("api.json", json.dumps(API)),
        ("gh.json", json.dumps(GH)),
        ("list.json", json.dumps([GH])),
        ("no-extension", json.dumps(API)),
        ("bom.json", "\ufeff" + json.dumps(API)),
        ("issue.md", BODY),
        ("titled.md", "# wrong result\n\n" + BODY),
        ("windows.md", BODY.replace("\n", "\r\n")),
        ("link.md", "[a link](https://x.y) comes first\n\n" + BODY),
    ],
)
def test_an_issue_is_read_from_any_form_of_file(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    code, output = read(tmp_path, str(tmp_path / name))
    assert code == 0, output
    assert "--torch 2.8.0+cu128 --nearest" in output


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("two.json", json.dumps([API, API]), "2 issues: run torchbisect triage"),
        ("empty.md", " \n", "is empty"),
        ("other.json", json.dumps({"title": "x"}), "no body"),
        ("deep.json", "[" * 100_000, "not JSON"),
    ],
)
def test_a_file_that_holds_no_single_issue(name: str, text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    code, output = read(tmp_path, str(tmp_path / name))
    assert code == 2
    assert said in output


@pytest.mark.parametrize("name", ["nothing.md", "a folder", "https://example.org/x", "https://github.com/a/b"])
def test_a_place_without_an_issue(name: str, tmp_path: Path) -> None:
    (tmp_path / "a folder").mkdir()
    code, output = read(tmp_path, str(tmp_path / name) if ":" not in name else name)
    assert code == 2
    assert "OWNER/REPO#N" in output


def test_neither_file_nor_reference(tmp_path: Path) -> None:
    code, output = read(tmp_path)
    assert code == 2
    assert "OWNER/REPO#N" in output


@pytest.fixture
def github(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with serving({"someone/project#7": issue(BODY)}) as address:
        monkeypatch.setenv("GITHUB_API_URL", address)
        monkeypatch.delenv("GITHUB_TOKEN", raising=False)
        yield


@pytest.mark.usefixtures("github")
@pytest.mark.parametrize("place", ["someone/project#7", "https://github.com/someone/project/issues/7"])
def test_an_issue_is_read_from_github(place: str, tmp_path: Path) -> None:
    code, output = read(tmp_path, place)
    assert code == 0, output
    assert (tmp_path / "out" / "repro.py").exists()


@pytest.mark.usefixtures("github")
def test_an_issue_that_does_not_exist(tmp_path: Path) -> None:
    code, output = read(tmp_path, "someone/project#8")
    assert code == 2
    assert "someone/project#8" in output


TWO_BLOCKS = """On torch 2.13.0 this agrees, by design:

```python
import torch
print(torch.compile(torch.sin, backend="eager")(torch.ones(2)))
```

and this one is off:

```python
import torch

@torch.compile(backend="eager")
def f(x):
    return x + 2 if torch.compiler.is_compiling() else x + 1

f(torch.ones(2))
```
"""


@pytest.mark.torch
@pytest.mark.long
@pytest.mark.parametrize("place", ["someone/project#7", "https://github.com/someone/project/issues/7"])
def test_the_script_that_fails_is_run(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving({"someone/project#7": issue(TWO_BLOCKS)}) as address:
        monkeypatch.setenv("GITHUB_API_URL", address)
        words = ["check", place, "--torch", "installed", "--out", str(tmp_path), "--cache-dir", str(tmp_path / "c")]
        result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    assert "no sandbox" in result.output
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["verdict"] == "mismatch"


def test_an_issue_that_cannot_be_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bodies = {"a/b#1": issue("no script"), "a/b#2": issue(TWO_BLOCKS.replace("import torch", "import torch, evil"))}
    with serving(bodies) as address:
        monkeypatch.setenv("GITHUB_API_URL", address)
        for name, said in (("a/b#1", "no Python code"), ("a/b#2", "--with evil"), ("a/b#3", "no such issue")):
            result = CliRunner().invoke(main, ["run", name, "--out", str(tmp_path / "out")])
            assert result.exit_code == 2
            assert said in result.output
