"""The results of a suite, in each of their formats."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

from torchbisect.triage.issue_row import IssueRow
from torchbisect.triage.suite.group import TestGroup
from torchbisect.triage.suite.outcomes import ApartTest
from torchbisect.triage.suite.results import SuiteResult, markdown, terminal_lines, write_results

ROW = IssueRow(
    "t.py::a",
    state="mismatch",
    summary="compiled gives 1 where eager gives 2 | ]]> <b>",
    last_good="2.12.0",
    first_bad="2.13.0",
    report="runs/a",
)
RESULT = SuiteResult(
    "pytest tests -q",
    "2.12.0",
    "2.13.0",
    (TestGroup(("t.py::a", "t.py::a[\x00]"), ROW, "import torch\n"),),
    (ApartTest("t.py::both", "both", "failed on the good build, failed on the bad one"),),
    2,
    {"t.py::a": "failed", "t.py::a[\x00]": "failed", "t.py::both": "failed", "t.py::c": "passed", "t.py::d": "skipped"},
)


def test_a_junit_file_has_each_test_and_fails_those_of_the_groups_only(tmp_path: Path) -> None:
    written = {path.name: path for path in write_results(RESULT, tmp_path)}
    suite = ElementTree.parse(written["suite.xml"]).getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("5", "2", "1")
    failing = [case.get("name") for case in suite if case.find("failure") is not None]
    assert len(failing) == 2
    assert failing[0] == "a"
    assert "2.12.0 good, 2.13.0 bad" in str(suite[0].find("failure").get("message"))  # type: ignore[union-attr]


def test_the_table_names_group_tests_mismatch_edge_and_script() -> None:
    text = markdown(RESULT)
    (row,) = [line for line in text.splitlines() if line.startswith("| 1 ")]
    assert "| 2 |" in row
    assert "2.12.0 good, 2.13.0 bad" in row
    assert "runs/a/minimal.py" in row
    assert "5 tests, 2 fail on 2.13.0 and not on 2.12.0: 1 group; apart: 1 fails on both builds" in text.replace(
        "\\", ""
    )


def test_json_and_the_page_are_written(tmp_path: Path) -> None:
    write_results(RESULT, tmp_path)
    value = json.loads((tmp_path / "suite.json").read_text())
    assert [group["tests"] for group in value["groups"]] == [["t.py::a", "t.py::a[\x00]"]]
    page = (tmp_path / "suite.html").read_text()
    assert "Triage of 3 tests" in page
    assert "<b>" not in page


def test_a_suite_without_a_new_failure_says_so() -> None:
    lines = list(terminal_lines(replace(RESULT, groups=()), ()))
    assert lines[0].startswith("5 tests, no new failure of torch.compile on 2.13.0")
