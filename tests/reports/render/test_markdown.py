"""``report.md`` as GitHub renders it, checked against the issue form."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jinja2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from torchbisect.reports.files import load
from torchbisect.reports.model.report import Logs, MinimalScript, Report, ScriptSize, UnfinishedPart
from torchbisect.reports.model.search_results import BuildFacts, BuildVerdict, SkippedBuild, SuspectCommit
from torchbisect.reports.render import markdown
from torchbisect.reports.render.markdown import FIRST_LINE, LIMIT, marker, render
from torchbisect.reports.sanitize import Markdown

#: Whole reports are slow to generate.
FEW = settings(max_examples=settings.default.max_examples // 4)

PARSER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
FORM = ["🐛 Describe the bug", "Error logs", "Versions"]
#: Reports of real runs, kept in the repository.
EXAMPLES = sorted((Path(__file__).parents[3] / "reports" / "examples").glob("**/report.json"))
#: All HTML tags of the template itself.
TAGS = {"<details>", "</details>", "<summary>", "</summary>", "<sub>", "</sub>"}
MARKER = re.compile(re.escape(FIRST_LINE) + r"\n<!-- torchbisect:signature ([0-9a-z]{1,64}) -->\n")
ACTIVE = re.compile(r"@\w|(?<![\w&])#\d|\bGH-\d|:\w+:", re.IGNORECASE)


def headings(tokens: list[Token]) -> list[str]:
    return [
        following.content
        for token, following in itertools.pairwise(tokens)
        if token.type == "heading_open" and token.tag == "h3"
    ]


def section(tokens: list[Token], title: str) -> list[Token]:
    start = next(n for n, token in enumerate(tokens) if token.type == "inline" and token.content == title)
    rest = tokens[start + 2 :]
    end = next((n for n, token in enumerate(rest) if token.type == "heading_open"), len(rest))
    return rest[:end]


def inlines(tokens: list[Token]) -> list[Token]:
    return [child for token in tokens for child in token.children or []]


def outside_code(text: str) -> str:
    """Return the text that a reader sees outside of code."""
    return " ".join(child.content for child in inlines(PARSER.parse(text)) if child.type == "text")


def check_form(text: str) -> list[Token]:
    """Check the properties of every report."""
    tokens = PARSER.parse(text)
    assert headings(tokens) in (FORM, FORM[1:])
    assert [token for token in tokens if token.type == "heading_open" and token.tag != "h3"] == []
    assert MARKER.match(text)
    assert len(text.encode()) < LIMIT
    blocks = [token.content for token in tokens if token.type == "html_block"]
    pieces = re.findall(r"<!--.*?-->|</?[^>]*>", "\n".join(blocks), re.DOTALL)
    pieces += [child.content for child in inlines(tokens) if child.type == "html_inline"]
    comments = [piece for piece in pieces if piece.startswith("<!--")]
    assert len(comments) == 2
    assert {piece for piece in pieces if not piece.startswith("<!--")} <= TAGS
    assert pieces.count("<details>") == pieces.count("</details>")
    assert not [child for child in inlines(tokens) if child.type == "image"]
    for child in inlines(tokens):
        if child.type == "link_open":
            assert str(child.attrs["href"]).startswith("https://github.com/pytorch/pytorch/commit/")
    seen = outside_code(text)
    assert not ACTIVE.search(seen)
    for address in re.findall(r"(?:https?|ftp|mailto|xmpp):[\w/]\S*|\bwww\.\w", seen, re.IGNORECASE):
        assert address.startswith("https://github.com/")
    return tokens


def test_a_report_begins_with_the_mismatch_of_the_minimal_script(whole: Report) -> None:
    assert whole.minimal is not None
    assert whole.mismatch is not None
    own = replace(
        whole.mismatch, summary="compiled gives 3 where eager gives 2 (call 0 output)", eager="2", compiled="3"
    )
    minimal = replace(whole.minimal, mismatch=own, log="Traceback of minimal.py\n")
    text = render(replace(whole, minimal=minimal))
    assert "Suggested title: `[module: dynamo] compiled gives 3 where eager gives 2 (call 0 output)`" in text
    first = text.index("\ncompiled gives 3 where eager gives 2")
    assert (
        first
        < text.index("- compiled: `3`")
        < text.index("The original script shows: compiled gives requires_grad=False")
    )
    assert "Traceback of minimal.py" in text
    assert text.count("Suggested title") == 1
    assert "Suggested title" not in render(replace(whole, verdict="none", mismatch=None, minimal=None))


@pytest.mark.parametrize(
    ("verdict", "said"), [("none", "No mismatch: "), ("untestable", "The script could not be tested: ")]
)
def test_a_report_without_a_mismatch_begins_with_what_was_found(whole: Report, verdict: str, said: str) -> None:
    text = render(replace(whole, verdict=verdict, reason="as measured", mismatch=None, minimal=None))
    seen = MARKER.sub("", text).strip()
    assert seen.startswith(f"{said}as measured\n")
    assert headings(check_form(text)) == FORM[1:]


def test_the_whole_report(whole: Report) -> None:
    tokens = check_form(render(whole))
    bug = section(tokens, FORM[0])
    fences = [token for token in bug if token.type == "fence"]
    assert whole.minimal is not None
    assert (fences[0].info, fences[0].content) == ("python", whole.minimal.source)
    assert (fences[1].info, fences[1].content) == ("sh", whole.command + "\n")
    assert sum(token.type == "table_open" for token in bug) == 3
    assert "Traceback" in next(token.content for token in section(tokens, FORM[1]) if token.type == "fence")
    assert "PyTorch version: 2.8.0" in next(
        token.content for token in section(tokens, FORM[2]) if token.type == "fence"
    )
    text = outside_code(render(whole))
    for words in (
        "compiled gives requires_grad=False where eager gives True",
        "shown in 5 of 5 runs",
        "All of the following are necessary to trigger the bug",
        "x needs requires_grad=True (0 of 12 variants without it failed)",
        "The first backend that shows it is",
        "Already bad in 2.2.2, the oldest build that could be tested.",
        "It was fixed after 2.8.0 (last bad) and not later than 2.9.1 (first fixed)",
        "Each of these alone avoids the mismatch",
        "Suggested labels:",
        "no person has checked it",
    ):
        assert words in text


def numbers(value: Any) -> set[str]:
    """Return every number of a report: the values, their roundings, and the numbers in texts."""
    if isinstance(value, dict):
        return set().union(*(numbers(key) | numbers(item) for key, item in value.items()), set())
    if isinstance(value, list):
        return set().union(*map(numbers, value), set())
    if isinstance(value, bool) or value is None:
        return set()
    texts = (str(value), f"{value:.6g}") if isinstance(value, (int, float)) else (str(value),)
    return set().union(*(re.findall(r"\d+", text) for text in texts))


def test_every_figure_is_in_the_json(whole: Report) -> None:
    known = numbers(json.loads(json.dumps(whole.to_json())))
    # The rest are words: the names of Markdown's marks, float64 and Python's own name for a release.
    shown = re.findall(r"\d+", re.sub(r"&#8203;", "", render(whole)))
    assert [figure for figure in shown if figure not in known] == []


@given(st.from_type(Report))
@FEW
def test_no_text_breaks_out(report: Report) -> None:
    check_form(render(report))


@given(st.from_type(Report))
@FEW
def test_rendering_is_a_function_of_the_json(report: Report) -> None:
    assert render(Report.from_json(json.loads(json.dumps(report.to_json())))) == render(report)


def huge(whole: Report) -> Report:
    assert whole.environment is not None
    assert whole.bisect is not None
    assert whole.localization is not None
    names = [f"2.14.0.dev{day}" for day in range(20240101, 20240170)]
    long = "é`@|" * 300
    return replace(
        whole,
        command=long,
        environment=replace(whole.environment, collect_env=(long + "\n") * 5),
        minimal=MinimalScript("m.py", 1, 1, 1, ScriptSize(1, 1, 1), 1, 1.0, ("x = 'é`'\n" * 12_000)),
        logs=Logs(eager=(long + "\n") * 90, compiled=(long + "\n") * 20),
        localization=replace(
            whole.localization, fixed_by=(long,) * 8, table=whole.localization.table * 12, component=long
        ),
        conditions=tuple(replace(c, statement=long) for c in (whole.conditions or ()) * 8),
        bisect=replace(
            whole.bisect,
            tested=tuple(BuildVerdict(name, "bad", long) for name in names),
            notices=(long,) * 8,
            left_out=(SkippedBuild(long, long),) * 8,
            listed=tuple(names),
            fix=replace(
                whole.bisect.fix, between=tuple(names), suspects=(SuspectCommit(long, long, long, (long,) * 9),) * 4
            ),
        ),
        builds={name: BuildFacts(long, date=long, commit=long) for name in names},
        mismatch=replace(whole.mismatch, summary=long, place=long, eager=long, compiled=long),  # type: ignore[type-var]
    )


@pytest.mark.slow
def test_a_huge_report_fits(whole: Report) -> None:
    text = render(huge(whole))
    check_form(text)
    assert "the rest is left out" in text


def test_logs_are_cut_before_the_script(whole: Report) -> None:
    """A long log is shortened before the script loses a line."""
    assert whole.minimal is not None
    source = "".join(f"value_{number} = {number}\n" for number in range(1500))
    report = replace(
        whole,
        minimal=replace(whole.minimal, source=source),
        logs=Logs(compiled="\n".join(f"line {number} {'x' * 300}" for number in range(400))),
    )
    text = render(report)
    assert len(text.encode()) < LIMIT
    assert source in text
    assert "lines left out" in text
    assert "line 399" in text


@pytest.mark.parametrize("verdict", ["none", "flaky", "untestable"])
def test_other_verdicts_have_no_section_about_a_mismatch(whole: Report, verdict: Any) -> None:
    report = Report("complete", verdict, whole.environment, whole.command, reason="eager fails in the same way")
    text = render(report)
    check_form(text)
    assert "eager fails in the same way" in text
    for word in ("Minimal script", "Ablation", "Workaround", "labels", "first bad", "necessary"):
        assert word not in text


def test_an_unfinished_part_is_named(whole: Report) -> None:
    report = replace(whole, state="partial", bisect=None, unfinished=(UnfinishedPart("bisect", "the index is down"),))
    text = render(report)
    assert "**Not finished**\n\n- bisect: the index is down" in text
    assert "Tested builds" not in text


def test_a_report_without_a_minimal_script_shows_the_original(whole: Report) -> None:
    text = render(replace(whole, minimal=None))
    assert "Original script" in text
    assert "```python\nimport torch\n```" in text


def test_no_path_of_the_machine_is_shown(whole: Report) -> None:
    assert whole.environment is not None
    report = replace(
        whole,
        command="torchbisect run /home/ann/work/x.py --out /home/ann/out",
        logs=Logs(compiled='File "/home/ann/v/lib/python3.11/site-packages/torch/a.py", line 3'),
        environment=replace(whole.environment, collect_env="Python: /home/ann/bin/python\n"),
    )
    text = render(report)
    assert "ann" not in text
    assert "torchbisect run x.py --out out" in text
    assert '"…/torch/a.py"' in text


def test_the_template_accepts_safe_markdown_only() -> None:
    environment = markdown._TEMPLATE.environment
    with pytest.raises(TypeError, match="not safe Markdown"):
        environment.from_string("{{ x }}").render(x="raw")
    assert environment.from_string("{{ x }}").render(x=Markdown("safe")) == "safe"
    with pytest.raises(TypeError):
        environment.from_string("{{ y }}").render()


def test_templates_have_loops_and_conditions_only() -> None:
    environment = markdown._TEMPLATE.environment
    assert environment.loader is not None
    for name in environment.loader.list_templates():
        source, _, _ = environment.loader.get_source(environment, name)
        tree = environment.parse(source)
        allowed = {"Template", "Output", "TemplateData", "Name", "Getattr", "Getitem", "Const", "For", "If"}
        allowed |= {"Not", "And", "Or", "Include"}
        assert {type(node).__name__ for node in tree.find_all(jinja2.nodes.Node)} <= allowed, name


@given(st.text(max_size=40))
def test_a_marker_holds_the_fingerprint_or_its_hash(fingerprint: str) -> None:
    found = MARKER.fullmatch(marker(fingerprint) + "\n")
    assert found
    if re.fullmatch("[0-9a-z]{1,64}", fingerprint):
        assert found.group(1) == fingerprint


def test_equal_runs_are_counted(whole: Report) -> None:
    assert whole.minimal is not None
    assert whole.bisect is not None
    minimal = replace(whole.minimal, confirmed=whole.minimal.confirmed * 3)
    bisect = replace(whole.bisect, tested=(*whole.bisect.tested, BuildVerdict("2.8.0", "bad", None, 1.0)))
    text = render(replace(whole, minimal=minimal, bisect=bisect))
    assert "| 1 (3 times) |" in text
    assert "| `2.8.0` |  | bad (2 times) |" in text


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_reports_of_real_runs(path: Path) -> None:
    report = load(path)
    text = render(report)
    check_form(text)
    data = json.dumps(report.to_json())
    known = numbers(json.loads(data))
    own = re.sub(r"\(\d+ times\)|&#8203;|… \d+ (?:line|frame)s? left out …", "", text)
    # A commit is written by its first letters; these digits are no figure of their own.
    own = re.sub(r"\b[0-9a-f]{7,40}\b", lambda found: "" if found.group() in data else found.group(), own)
    assert [figure for figure in re.findall(r"\d+", own) if figure not in known] == []
    assert path.with_name("report.md").read_text(encoding="utf-8") == text, "run: torchbisect report DIR"


def test_the_compare_link_is_made_of_both_commits(whole: Report) -> None:
    assert whole.bisect is not None
    assert whole.bisect.fix is not None
    fix = replace(whole.bisect.fix, compare=None)
    one = replace(whole, bisect=replace(whole.bisect, fix=fix))
    assert "/compare/" not in render(one)
    old = whole.builds["2.8.0"].commit
    both = replace(one, builds={**whole.builds, "2.9.1": replace(whole.builds["2.9.1"], commit="d" * 40)})
    assert f"https://github.com/pytorch/pytorch/compare/{old}...{'d' * 40}" in render(both)
    check_form(render(both))
