"""Runs against a table of answers."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
from table_run import Run, run_in


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs scripts against tables, all in one folder."""
    return functools.partial(run_in, tmp_path)
