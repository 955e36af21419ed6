"""The page of a triage is safe for any content, and its table has a line an issue."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from torchbisect.triage.issue_row import STATES, IssueRow
from torchbisect.triage.issue_table import html_page, terminal_table

HARM = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "javascript:alert(1)",
    "https://evil.example/x?a=\"onclick='b'",
    "\x1b[2Jx\u202e",
    "{{ 7 * 7 }}[bold]x[/bold]",
    "a\nb" * 50,
)
texts = st.sampled_from(HARM) | st.text(max_size=20)
rows = st.lists(
    st.builds(
        IssueRow,
        **dict.fromkeys(("name", "title", "url", "reason", "summary", "signature", "report", "component"), texts),
        state=st.sampled_from(STATES),
        labels=st.lists(texts, max_size=2).map(tuple),
    ),
    max_size=5,
    unique_by=lambda row: row.name,
)


class Reader(HTMLParser):
    """A parser that collects the tags and attributes of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@given(rows)
def test_the_page_is_safe(found: list[IssueRow]) -> None:
    page = html_page(found)
    read = Reader(page)
    tags = [tag for tag, _ in read.found]
    assert tags.count("script") == 1
    assert not {"img", "iframe", "object", "embed", "link", "base", "form"} & set(tags)
    assert not [name for _, held in read.found for name in held if name.startswith("on")]
    for _, held in read.found:
        address = held.get("href")
        assert address is None or re.match(r"#issue-\d+$|https://|[^:]*/report\.html$", address), address
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL)
    assert script is not None
    digest = base64.b64encode(hashlib.sha256(script.group(1).encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page
    assert "\x1b" not in page
    assert "\u202e" not in page


def test_each_row_opens_its_report() -> None:
    page = html_page(
        [IssueRow("someone/project#7", state="mismatch", report="runs/a#b", url="https://github.com/a/b/issues/7")]
    )
    assert 'href="runs/a%23b/report.html"' in page
    assert 'href="https://github.com/a/b/issues/7"' in page


@given(rows)
def test_the_table_has_a_line_for_each_finding(found: list[IssueRow]) -> None:
    with Path("/dev/null").open("w") as nowhere:
        console = Console(file=nowhere, record=True, width=160)
        console.print(terminal_table(found))
    text = console.export_text()
    shown = [row for row in found if row.state in ("mismatch", "flaky", "untestable", "failed", "known")]
    assert len(text.rstrip("\n").split("\n")) == (len(shown) + 3 if shown else 1)
    assert f"{len(found)} issues" in text
    assert "\x1b" not in text
