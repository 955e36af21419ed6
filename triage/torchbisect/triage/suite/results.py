"""The results of a suite on two builds, as JSON, Markdown, JUnit XML, a page, and lines for a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from torchbisect.core.printable import clean, one_line
from torchbisect.core.scrub import scrub
from torchbisect.reports.files import replace_text
from torchbisect.reports.sanitize import code, code_cell, fence, prose, short_line, without_machine_paths
from torchbisect.triage.issue_row import IssueRow
from torchbisect.triage.issue_table import html_page
from torchbisect.triage.suite.group import TestGroup
from torchbisect.triage.suite.outcomes import APART, ApartTest, counted

JSON, MARKDOWN, JUNIT, PAGE = "suite.json", "suite.md", "suite.xml", "suite.html"


@dataclass(frozen=True)
class SuiteResult:
    """The result of a suite on two builds.

    Attributes:
        command: the command of pytest.
        good: the build on which the tests pass.
        bad: the build on which some fail.
        groups: the new failures.
        apart: the tests that fail somewhere and do not count.
        agreed: the number of tests that fail on neither build.
        outcomes: the outcome of each test on the bad build.
        notices: facts that a reader should know, a line each.
    """

    command: str
    good: str
    bad: str
    groups: tuple[TestGroup, ...] = ()
    apart: tuple[ApartTest, ...] = ()
    agreed: int = 0
    outcomes: Mapping[str, str] = field(default_factory=dict)
    notices: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        """The result in one sentence."""
        failures = sum(len(group.tests) for group in self.groups)
        total = len({*self.outcomes, *(test.name for test in self.apart)})
        counts = "; ".join(f"{len(tests)} {_plural(kind, tests)}" for kind, tests in counted(self.apart).items())
        if not self.groups:
            tests = f"{total} tests, no new failure of torch.compile on {self.bad}"
        else:
            groups = "1 group" if len(self.groups) == 1 else f"{len(self.groups)} groups"
            tests = f"{total} tests, {failures} fail on {self.bad} and not on {self.good}: {groups}"
        return tests + (f"; apart: {counts}" if counts else "")

    def to_json(self) -> dict[str, Any]:
        """Return the value of ``suite.json``."""
        return {
            "command": self.command,
            "good": self.good,
            "bad": self.bad,
            "tests": len(self.outcomes),
            "groups": [group.to_json() for group in self.groups],
            "apart": [asdict(test) for test in self.apart],
            "agreed": self.agreed,
            "notices": list(self.notices),
        }


def write_results(result: SuiteResult, folder: Path) -> tuple[Path, ...]:
    """Write the result in all its formats into a folder, and return the files."""
    texts = {
        MARKDOWN: markdown(result),
        JUNIT: junit(result),
        PAGE: html_page(_rows(result), "tests"),
        JSON: json.dumps(result.to_json(), indent=2) + "\n",
    }
    for name, text in texts.items():
        replace_text(folder / name, without_machine_paths(scrub(text)) if name != PAGE else scrub(text))
    return tuple(folder / name for name in texts)


def markdown(result: SuiteResult) -> str:
    """Return the result in Markdown."""
    parts = [f"# {prose(result.command)} on torch {result.good} and {result.bad}", prose(result.headline, 1000)]
    if result.groups:
        table = ["| group | tests | mismatch | edge | component | shrunk script |", "|---|---|---|---|---|---|"]
        for number, group in enumerate(result.groups, 1):
            row = group.row
            script = code_cell(f"{row.report}/minimal.py") if group.minimal else ""
            cells = [str(number), str(len(group.tests)), code_cell(row.summary), group.edge, row.component, script]
            table.append(f"| {' | '.join(cells)} |")
        parts.append("\n".join(table))
    for number, group in enumerate(result.groups, 1):
        parts.append(f"## Group {number}")
        parts.append("\n".join(f"- {code(name, 300)}" for name in group.tests))
        parts.append(f"signature {code(group.row.signature)}; {code(group.row.summary, 400)}")
        parts += [f"not finished: {prose(group.row.unfinished)}"] if group.row.unfinished else []
        parts += [fence(group.minimal, "python")] if group.minimal else []
    if result.apart:
        parts.append("## Tests that do not count")
        rows = [f"| {code_cell(t.name, 300)} | {APART[t.kind]} | {prose(t.reason)} |" for t in _ordered(result.apart)]
        parts.append("\n".join(["| test | | why |", "|---|---|---|", *rows]))
    parts += ["\n".join(f"- {prose(notice)}" for notice in result.notices)] if result.notices else []
    return "\n\n".join(parts) + "\n"


def junit(result: SuiteResult) -> str:
    """Return the result as JUnit XML: each test of the bad build; only new failures of torch.compile are failures."""
    groups = {name: (number, group) for number, group in enumerate(result.groups, 1) for name in group.tests}
    apart = {test.name: test for test in result.apart}
    names = list(dict.fromkeys((*result.outcomes, *apart)))
    suite = ElementTree.Element(
        "testsuite",
        name=f"torch {result.good} and {result.bad}",
        tests=str(len(names)),
        failures=str(len(groups)),
        errors="0",
        skipped=str(len(apart)),
    )
    for name in names:
        file, _, test = name.partition("::")
        case = ElementTree.SubElement(suite, "testcase", classname=clean(file), name=clean(test))
        if name in groups:
            number, group = groups[name]
            said = f"group {number}: {group.row.summary}; {group.edge}"
            ElementTree.SubElement(case, "failure", message=one_line(said, 1000)).text = clean(group.minimal)
        elif name in apart:
            found = apart[name]
            ElementTree.SubElement(case, "skipped", message=one_line(f"{APART[found.kind]}: {found.reason}", 1000))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def terminal_lines(result: SuiteResult, written: Sequence[Path]) -> Iterator[str]:
    """Yield the lines of the result for a terminal."""
    yield result.headline
    for number, group in enumerate(result.groups, 1):
        row = group.row
        yield f"group {number}       {short_line(row.summary, 300)}"
        yield f"  tests       {len(group.tests)}, {one_line(group.first, 200)} the first"
        yield f"  edge        {group.edge or row.unfinished or 'not found'}"
        if group.minimal:
            yield f"  script      {row.report}/minimal.py, {len(group.minimal.splitlines())} lines"
    for kind, tests in counted(result.apart).items():
        named = ", ".join(one_line(test.name, 120) for test in tests[:3])
        yield f"apart         {len(tests)} {_plural(kind, tests)}: {named}" + (" ..." if len(tests) > 3 else "")
    for path in written:
        yield f"written       {path}"


def _plural(kind: str, tests: Sequence[ApartTest]) -> str:
    text = APART[kind]
    return text if len(tests) == 1 else text.replace("fails", "fail").replace("does not", "do not")


def _ordered(apart: Sequence[ApartTest]) -> Iterator[ApartTest]:
    for tests in counted(apart).values():
        yield from tests


def _rows(result: SuiteResult) -> list[IssueRow]:
    """Return the rows of the page: each test that fails somewhere."""
    rows = [replace(group.row, name=name) for group in result.groups for name in group.tests]
    state = {"flaky": "flaky", "not-compiled": "untestable", "both": "untestable", "one-build": "untestable"}
    for test in _ordered(result.apart):
        reason = f"{APART[test.kind]}: {test.reason}"
        rows.append(IssueRow(test.name, state=state.get(test.kind, "none"), reason=reason, torch=result.bad))
    return rows
