"""Encoding of dataclasses as JSON, and the errors for a report of another shape."""

from __future__ import annotations

import math
from typing import Any

import pytest

from torchbisect.reports.model.json_codec import encode
from torchbisect.reports.model.report import SCHEMA, InputError, Report


def test_numbers_that_json_lacks() -> None:
    assert encode([math.nan, math.inf, -math.inf, 1.5]) == ["nan", "inf", "-inf", 1.5]


@pytest.mark.parametrize("data", [None, [], "x", {}, {"schema": "1"}, {"schema": SCHEMA}])
def test_other_values_are_an_input_error(data: Any) -> None:
    with pytest.raises(InputError, match="not a torchbisect report"):
        Report.from_json(data)


def test_a_newer_schema_is_named() -> None:
    with pytest.raises(InputError, match="newer torchbisect"):
        Report.from_json({"schema": SCHEMA + 1})
