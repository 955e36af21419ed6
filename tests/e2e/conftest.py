"""Environments are shared between the tests of one run, so that each release is installed once."""

from __future__ import annotations

from pathlib import Path

import pytest
from running import Tool


@pytest.fixture
def tool(tmp_path: Path, cache: Path) -> Tool:
    """The command in an empty folder."""
    return Tool(tmp_path, cache)
