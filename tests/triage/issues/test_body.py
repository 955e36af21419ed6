"""Bodies of issues. The first line of each file in ``issue_bodies/`` states the expected result."""

from __future__ import annotations

import ast
import json
import textwrap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from torchbisect.triage.issues.body import Issue, read_issue, reply
from torchbisect.triage.issues.code_blocks import code_blocks
from torchbisect.triage.issues.python_text import syntax_error
from torchbisect.triage.issues.script_facts import unknown_names

BODIES = sorted((Path(__file__).parent / "issue_bodies").glob("*.md"))


def read(path: Path) -> tuple[dict[str, Any], Issue]:
    with path.open(encoding="utf-8", newline="") as file:
        expect = json.loads(file.readline().removeprefix("<!-- expect: ").removesuffix(" -->\n"))
        return expect, read_issue(file.read())


def test_there_are_at_least_forty_bodies() -> None:
    assert len(BODIES) >= 40


@pytest.mark.parametrize("path", BODIES, ids=lambda path: path.stem)
def test_a_body_is_read_as_expected(path: Path) -> None:
    expect, issue = read(path)
    text = issue.script.text if issue.script else ""
    for words in expect.get("has", ()):
        assert words in text
    for words in expect.get("hasnt", ()):
        assert words not in text
    for words in expect.get("missing", ()):
        assert any(words in line for line in issue.missing), issue.missing
    assert bool(issue.missing) == bool(expect.get("missing")), issue.missing
    if "note" in expect:
        assert any(expect["note"] in note for note in issue.notes), issue.notes
    for name in ("torch", "python", "device", "gpu"):
        if name in expect:
            assert getattr(issue, name) == expect[name]
    if "packages" in expect:
        assert issue.script is not None
        assert list(issue.script.packages) == expect["packages"]
    if issue.runnable:
        assert issue.script is not None
        ast.parse(issue.script.text)
        assert unknown_names(issue.script.text) == []


@given(
    st.text(max_size=300)
    | st.lists(
        st.sampled_from(
            [
                "```",
                "```python",
                "~~~",
                "import torch",
                ">>> x = 1",
                "    y = 2",
                "### Versions",
                "<details>",
                "</details>",
                "def f(x):",
                "torch.compile(f)(x)",
                "...",
                "> ```",
                "",
                "In [1]: z",
                "<pre><code>",
                "</code></pre>",
                "x = (",
                "Traceback (most recent call last):",
                "PyTorch version: 2.8.0",
                "from torch import *",
                "\tq",
                "\x00",
                "\ud800",
            ]
        ),
        max_size=25,
    ).map("\n".join)
)
def test_no_body_crashes_it(body: str) -> None:
    issue = read_issue(body)
    assert issue.runnable or issue.missing
    if issue.runnable:
        assert issue.script is not None
        ast.parse(issue.script.text)
    text = reply(issue)
    assert text.startswith("The script of this issue can")
    text.encode()


PROGRAMS = st.lists(
    st.sampled_from(
        ["x = 1", "if x:\n    y = 2", "# words", "", "def g(a):\n    return '```'", "s = '''\n### no\n'''"]
    ),
    max_size=6,
).map(lambda lines: "\n".join(["import torch", *lines, "torch.compile(abs)(torch.ones(1))"]))


@given(
    PROGRAMS, st.sampled_from(["python", "py", "", "Python3"]), st.sampled_from(["", "Some words.\n\n", "- list\n\n"])
)
def test_a_fenced_script_is_unchanged(program: str, language: str, before: str) -> None:
    body = f"### 🐛 Describe the bug\n\n{before}````{language}\n{program}\n````\n\n### Versions\n\nx\n"
    issue = read_issue(body)
    assert issue.script is not None
    assert issue.script.text == program + "\n"


@given(st.lists(st.sampled_from(["a = 1", "def f(x):", "    return x", "", "f(a)"]), min_size=1, max_size=8))
def test_blocks_lose_no_line(lines: list[str]) -> None:
    text = "\n".join(lines)
    (block,) = code_blocks(f"words\n\n```\n{text}\n```\nmore")
    assert block.text == textwrap.dedent(text).strip("\n")


def test_a_reply_escapes_foreign_text() -> None:
    body = "```python\nimport torch\n@everyone\nclass X: pass\n```\nPyTorch version: 2.8.0"
    issue = read_issue(body + "\n```python\nimport evil_`x`\n```")
    rendered = MarkdownIt("commonmark", {"html": True}).render(reply(issue))
    assert "@everyone" not in rendered
    assert "torch.compile: the script has none" in rendered


def test_a_huge_body_is_read_quickly() -> None:
    for piece in ("```\n", "import torch\n", ">>> x\n", "<pre>", "    x\n", "<details>\n", "x = [\n", "#" * 50, "\n> "):
        assert read_issue(piece * (6_000 // len(piece))) is not None


@pytest.mark.parametrize("code", ["lambda:" * 9000 + "0", "x" + "()" * 9000])
def test_a_script_that_is_nested_too_deeply_is_said_so(code: str) -> None:
    found = syntax_error(f"import torch\n{code}\n")
    assert found is not None
    assert found == "an expression that is nested too deeply" or found.startswith("line 2: ")
