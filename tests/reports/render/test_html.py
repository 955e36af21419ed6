"""Safety and layout of ``report.html``."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchbisect.reports.model.report import Report
from torchbisect.reports.render import html

#: Whole reports are slow to generate.
FEW = settings(max_examples=settings.default.max_examples // 4)

VOID = {"meta", "circle", "path", "rect", "line", "use", "br"}


class Reader(HTMLParser):
    """A parser that collects the parts of a page that could do harm."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.names: list[str] = []
        self.ids: list[str] = []
        self.text: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            self.names.append(name)
            if name in ("href", "src", "action", "xlink:href", "style"):
                self.addresses.append(value or "")
            if name == "id":
                self.ids.append(value or "")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> ends nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def check_page(page: str) -> Reader:
    """Check the properties of every page."""
    read = Reader(page)
    assert read.open == []
    assert not {"script", "img", "iframe", "object", "embed", "link", "base", "form", "a"} & set(read.tags)
    assert all(address.startswith("#mark-") for address in read.addresses)
    assert {address[1:] for address in read.addresses} <= set(read.ids)
    assert len(set(read.ids)) == len(read.ids)
    assert not [name for name in read.names if name.startswith("on")]
    assert read.tags.count("h1") == 1
    assert "default-src 'none'" in page
    assert all(c == "\n" or c == "\t" or unicodedata.category(c)[0] != "C" for c in page)
    return read


def test_the_whole_page(whole: Report) -> None:
    read = check_page(html.render(whole))
    text = " ".join(" ".join(read.text).split())
    for words in (
        "Mismatch",
        "compiled gives requires_grad=False where eager gives True",
        "Shown in 5 of 5 runs.",
        '@torch.compile(backend="eager")',
        "Already bad in 2.2.2",
        "untestable: import-failed",
        "torch._dynamo.config.disable = True",
        "12 lines and 224 bytes, from 143 lines and 5312 bytes",
        "0 of 12",
    ):
        assert words in text
    assert read.tags.count("svg") >= 3


@given(st.from_type(Report))
@FEW
def test_no_text_breaks_out(report: Report) -> None:
    check_page(html.render(report))


@pytest.mark.parametrize("verdict", ["none", "untestable"])
def test_a_page_with_few_parts(whole: Report, verdict: Any) -> None:
    report = Report("complete", verdict, whole.environment, whole.command, reason="12 calls were compared")
    read = check_page(html.render(report))
    assert "12 calls were compared" in " ".join(read.text)
    assert "table" not in read.tags


def test_no_path_of_the_machine_is_shown(whole: Report) -> None:
    assert whole.environment is not None
    report = replace(
        whole,
        command="torchbisect run /home/ann/x.py",
        environment=replace(whole.environment, collect_env="/home/ann/env", platform="/home/ann/p"),
        reason="/home/ann/r",
    )
    assert "ann" not in html.render(report)


def luminance(color: str) -> float:
    channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_colors_have_enough_contrast(whole: Report, scheme: int) -> None:
    """WCAG 2.2 AA asks for a contrast of 4.5 to 1 between text and every background behind it."""
    blocks = re.findall(r":root \{(.*?)\}", html.render(whole), re.DOTALL)
    colors = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", blocks[scheme]))
    for ink in ("ink", "quiet", "good", "bad", "untestable", "accent"):
        for ground in ("paper", "raised") + (("removed", "added") if ink in ("ink", "quiet") else ()):
            bright, dark = sorted((luminance(colors[ink]), luminance(colors[ground])), reverse=True)
            assert (bright + 0.05) / (dark + 0.05) >= 4.5, (ink, ground)


@given(st.lists(st.sampled_from(["a = 1", "  b = 2", "", "c = 3"]), max_size=12), st.data())
def test_side_by_side(lines: list[str], data: st.DataObject) -> None:
    kept = [line.strip() for line in lines if data.draw(st.booleans())]
    before, after = html.side_by_side("\n".join(lines), "\n".join(kept))
    assert [line.text for line in before] == ("\n".join(lines).rstrip("\n").split("\n"))
    assert [line.text for line in after] == ("\n".join(kept).rstrip("\n").split("\n"))
    left = [line.text.strip() for line in before if not line.changed and line.text.strip()]
    assert left == [line.text.strip() for line in after if not line.changed and line.text.strip()]
    if kept == [line.strip() for line in lines]:
        assert not any(line.changed for line in (*before, *after))
