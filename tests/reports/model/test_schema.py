"""``schema.json``, and reports checked against it."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchbisect.reports.files import load as load_report
from torchbisect.reports.files import to_text
from torchbisect.reports.model.report import Report
from torchbisect.reports.model.schema import load, schema

#: Whole reports are slow to generate.
FEW = settings(max_examples=settings.default.max_examples // 4)

VALIDATOR = jsonschema.Draft202012Validator(load())


def test_the_file_agrees_with_the_dataclasses() -> None:
    assert load() == schema(), (
        "python -m torchbisect.reports.model.schema > reports/torchbisect/reports/model/schema.json"
    )


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(load())


@given(st.from_type(Report))
@FEW
def test_every_report_is_valid_and_read_back(report: Report) -> None:
    data = json.loads(to_text(report))
    VALIDATOR.validate(data)
    assert Report.from_json(data).to_json() == report.to_json()


def test_the_keys_that_other_programs_rely_on(whole: Report) -> None:
    data = whole.to_json()
    names = {"schema", "verdict", "mismatch", "localization", "minimal", "bisect", "environment", "command"}
    assert names <= set(data)
    assert {"kind", "summary", "signature"} <= set(data["mismatch"])
    assert {"backend", "component", "settings", "fixed_by"} <= set(data["localization"])
    assert {"path", "bytes", "lines", "nodes", "original", "candidates", "seconds"} <= set(data["minimal"])
    assert set(data["minimal"]["original"]) == {"bytes", "lines", "nodes"}
    assert {"last_good", "first_bad", "between", "skipped"} <= set(data["bisect"]["regression"])
    assert {"last_bad", "first_fixed", "between", "skipped"} <= set(data["bisect"]["fix"])
    assert {"build", "verdict", "reason", "seconds"} <= set(data["bisect"]["tested"][0])


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["schema"], 2),
        (["verdict"], "broken"),
        (["mismatch", "kind"], None),
        (["minimal", "bytes"], "224"),
        (["bisect", "fix", "between"], "2.9.0"),
        (["environment", "torch"], 2.8),
        (["command"], ["torchbisect"]),
    ],
)
def test_wrong_values_are_rejected(whole: Report, path: list[str], value: Any) -> None:
    data = copy.deepcopy(whole.to_json())
    at: Any = data
    for name in path[:-1]:
        at = at[name]
    at[path[-1]] = value
    assert not VALIDATOR.is_valid(data)


EXAMPLES = sorted((Path(__file__).parents[3] / "reports" / "examples").glob("**/report.json"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_reports_of_real_runs(path: Path) -> None:
    VALIDATOR.validate(json.loads(path.read_bytes()))


def test_a_report_with_the_old_spelling_of_a_key_is_read() -> None:
    path = Path(__file__).with_name("old_reports") / "localisation_key.json"
    data = json.loads(path.read_bytes())
    report = load_report(path)
    assert report.localization is not None
    assert report.localization.backend == data["localisation"]["backend"] == "aot_eager"
    written = report.to_json()
    assert "localisation" not in written
    VALIDATOR.validate(written)


def test_the_documentation_names_every_field() -> None:
    text = (Path(__file__).parents[3] / "docs" / "reference" / "report-schema.md").read_text(encoding="utf-8")
    data = load()
    for name, definition in [("Report", data), *data["$defs"].items()]:
        for field in definition["properties"]:
            assert f"`{field}`" in text, f"{name}.{field} is not in docs/reference/report-schema.md"
