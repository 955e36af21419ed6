"""Foreign text in Markdown, rendered by a CommonMark library and checked as a reader sees it, and without paths."""

from __future__ import annotations

import html
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from torchbisect.core.printable import clean, one_line
from torchbisect.reports.sanitize import code, code_cell, fence, in_one_folder, prose, without_machine_paths

PARSER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
ALPHABET = st.text(
    st.sampled_from("ab1 \n\t\r`*_~|<>[]()!#@:./\\&;-+=$^{}\"'\x1b\x00\u202e\u200b\ud800é🐛") | st.characters(),
    max_size=60,
)


def plain(line: str) -> str:
    return line.replace("\u200b", "")


def visible(rendered: str) -> str:
    return plain(html.unescape(re.sub(r"<[^>]*>", "", rendered)))


@given(ALPHABET)
def test_clean_removes_invisible_characters(text: str) -> None:
    cleaned = clean(text)
    assert all(c in "\n\t" or unicodedata.category(c)[0] != "C" for c in cleaned)
    assert clean(cleaned) == cleaned
    cleaned.encode()


def test_clean_keeps_the_meaning_of_a_string_literal() -> None:
    source = 'word = "a\u202eb\u200b"\n\tx = "é🐛"\r\ny = 1'
    cleaned = clean(source)
    assert cleaned == 'word = "a\\u202eb\\u200b"\n\tx = "é🐛"\ny = 1'
    before: dict[str, object] = {}
    after: dict[str, object] = {}
    exec(source.replace("\r", "").replace("\t", ""), before)
    exec(cleaned.replace("\t", ""), after)
    assert before["word"] == after["word"]


def test_terminal_sequences_are_removed() -> None:
    assert clean("\x1b[31mred\x1b[0m \x1b]0;title\x07end \x1b]8;;http://x\x1b\\link") == "red end link"


@given(ALPHABET, st.integers(2, 40))
def test_one_line_is_one_line(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert len(line) <= limit
    assert "\n" not in line
    assert line == line.strip()


@given(ALPHABET)
def test_nothing_ends_a_fence(text: str) -> None:
    tokens = PARSER.parse(f"before\n\n{fence(text, 'python')}\n\nafter")
    assert [token.type for token in tokens if token.level == 0] == [
        "paragraph_open",
        "paragraph_close",
        "fence",
        "paragraph_open",
        "paragraph_close",
    ]
    block = next(token for token in tokens if token.type == "fence")
    assert block.content.rstrip("\n") == clean(text).rstrip("\n")


@given(ALPHABET)
def test_a_code_span_shows_its_text(text: str) -> None:
    line = one_line(text)
    tokens = PARSER.parse(f"x {code(text)} y")[1].children or []
    if not line:
        assert code(text) == ""
        return
    assert [token.type for token in tokens] == ["text", "code_inline", "text"]
    assert tokens[1].content == line


@given(st.lists(ALPHABET, min_size=2, max_size=2))
def test_cells_stay_cells(texts: list[str]) -> None:
    row = "| " + " | ".join(code_cell(text) for text in texts) + " |"
    rendered = PARSER.render(f"| a | b |\n|---|---|\n{row}\n")
    assert rendered.count("<td") == 2
    assert rendered.count("<tr") == 2
    cells = re.findall(r"<td>(.*?)</td>", rendered, re.DOTALL)
    for cell, text in zip(cells, texts):
        assert html.unescape(re.sub(r"</?code>", "", cell)) == one_line(text)


@given(ALPHABET)
def test_prose_shows_just_its_text(text: str) -> None:
    rendered = PARSER.render(prose(text))
    assert set(re.findall(r"</?([a-z0-9]+)", rendered)) <= {"p"}
    assert visible(rendered).strip() == plain(one_line(text, 400))


@given(ALPHABET, ALPHABET)
def test_prose_in_a_list(first: str, second: str) -> None:
    rendered = PARSER.render(f"- {prose(first) or '.'}\n- {prose(second) or '.'}\n")
    assert rendered.count("<li>") == 2
    assert set(re.findall(r"</?([a-z0-9]+)", rendered)) <= {"ul", "li"}


ACTIVE = re.compile(r"@\w|(?<!\w)#\d|\bGH-\d|\b(?:https?|ftp|mailto|xmpp):[\w/]|\bwww\.\w|:\w+:", re.IGNORECASE)


@pytest.mark.parametrize(
    "text",
    [
        "@octocat",
        "mail me@example.org",
        "see #12 and pytorch/pytorch#12",
        "GH-12",
        "https://example.org/x",
        "HTTPS://example.org",
        "mailto:a",
        "www.example.org",
        ":rocket:",
        ":+1:",
        "a:b:c:d:",
    ],
)
def test_known_triggers_of_github_are_disarmed(text: str) -> None:
    assert not ACTIVE.search(html.unescape(re.sub(r"<[^>]*>", "", PARSER.render(prose(text)))))


@given(ALPHABET)
def test_no_text_triggers_github(text: str) -> None:
    assert not ACTIVE.search(html.unescape(re.sub(r"<[^>]*>", "", PARSER.render(prose(text)))))


@pytest.mark.parametrize("text", ["2.8.0 is bad", "requires_grad=True", "call 0 output", "a - b + c (d)", "x: y"])
def test_ordinary_words_are_unchanged(text: str) -> None:
    assert prose(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('File "/home/ann/x/repro.py", line 3', 'File "…/repro.py", line 3'),
        ("/opt/v/lib/python3.11/site-packages/torch/_dynamo/a.py:7", "…/torch/_dynamo/a.py:7"),
        ("/usr/lib/python3/dist-packages/numpy/core.py", "…/numpy/core.py"),
        ("/usr/lib/python3.11/asyncio/base.py", "…/python3.11/asyncio/base.py"),
        ("/srv/pyenv/versions/3.11.7/lib/python3.11/site-packages", "…/python3.11/site-packages"),
        ("g++ /tmp/torchinductor_ann/ab/cab.cpp -I/opt/inc/x -L/opt/lib/y -o /tmp/q/o.so", None),
        ("file:///home/ann/x.py", "file://…/x.py"),
        ("PATH=/home/ann/bin:/usr/local/bin", "PATH=…/bin:…/bin"),
        (r"C:\Users\Ann\repro.py failed", "…/repro.py failed"),
        ("in /home", "in …"),
        ("cwd=/Users", "cwd=…"),
    ],
)
def test_absolute_paths_are_shortened(text: str, shown: str | None) -> None:
    result = without_machine_paths(text)
    assert shown is None or result == shown
    assert not any(secret in result for secret in ("ann", "Ann", "/opt", "/usr", "/tmp", "/srv"))


@pytest.mark.parametrize(
    "text",
    [
        "https://github.com/pytorch/pytorch/issues/1",
        "torch/_dynamo/a.py and ./x/y.py and ../z/q",
        "/dev/null and /proc/self/status",
        "a / b, 3/4, 1 // 2, x/y/z, and/or",
        "dtype torch.float32/64 [/] 2:1",
    ],
)
def test_other_texts_stay(text: str) -> None:
    assert without_machine_paths(text) == text


def test_a_command_in_the_folder_of_its_files() -> None:
    command = "torchbisect run /home/ann/x/repro.py --torch 2.8.0 --out /home/ann/out"
    assert in_one_folder(command) == "torchbisect run repro.py --torch 2.8.0 --out out"


NAMES = st.text("abcxyz-_.09", min_size=1, max_size=8).filter(lambda name: name.strip("."))


@given(st.lists(NAMES, min_size=2, max_size=6), st.sampled_from(["", "at ", '"', "('", "x=", "\n"]))
def test_no_absolute_path_is_left(parts: list[str], before: str) -> None:
    path = "/secret-" + "/".join(parts)
    result = without_machine_paths(before + path)
    assert "secret" not in result
    assert parts[-1] in result


@given(st.text("ab/ .:\\C~…'\"=-I", max_size=40))
def test_a_second_pass_changes_nothing(text: str) -> None:
    once = without_machine_paths(text)
    assert without_machine_paths(once) == once
