"""Environments are shared between the tests of one run, so that each release is installed once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from running import Tool


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all tests; a developer may name one that lasts with ``TORCHBISECT_TEST_CACHE``."""
    kept = os.environ.get("TORCHBISECT_TEST_CACHE")
    if kept:
        return Path(kept)
    alone = "PYTEST_XDIST_WORKER" not in os.environ
    return tmp_path_factory.mktemp("cache") if alone else tmp_path_factory.getbasetemp().parent / "cache"


@pytest.fixture
def tool(tmp_path: Path, cache: Path) -> Tool:
    """The command in an empty folder."""
    return Tool(tmp_path, cache)
