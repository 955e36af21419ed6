"""The command with the torch that is installed beside it."""

from __future__ import annotations

from pathlib import Path

import pytest
from running import Tool


@pytest.fixture
def tool(tmp_path: Path) -> Tool:
    """The command in an empty folder, with an empty cache."""
    return Tool(tmp_path, tmp_path / "cache")
