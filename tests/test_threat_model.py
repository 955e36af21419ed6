"""Each promise of the threat model names tests, and these exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
_NAMED = re.compile(r"`(tests/[^`\s:]+)(?:::([^`\s]+))?`")


def promises() -> list[str]:
    """Return the rows of the tables of promises, without their heads."""
    text = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
    promised = text.partition("\n## What is promised\n")[2].partition("\n## ")[0]
    rows = [line for line in promised.splitlines() if line.startswith("|")]
    return [row for row in rows if not re.match(r"\|[- |]+\|$|\| promise \|", row)]


@cache
def functions(path: Path) -> frozenset[str]:
    """Return the names of a file's tests."""
    return frozenset(node.name for node in ast.parse(path.read_bytes()).body if isinstance(node, ast.FunctionDef))


def test_the_tables_are_found() -> None:
    assert len(promises()) > 30


@pytest.mark.parametrize("row", promises(), ids=lambda row: row.strip("| ")[:50])
def test_each_promise_names_a_test_that_exists(row: str) -> None:
    named = _NAMED.findall(row)
    assert named, row
    for path, function in named:
        place = ROOT / path
        assert place.is_file(), path
        assert place.name.startswith("test_")
        tests = {name for name in functions(place) if name.startswith("test_")}
        assert function in tests if function else tests, f"{path}::{function}"
