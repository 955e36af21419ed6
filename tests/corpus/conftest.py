"""The corpus shares its environments with the other tests of the whole tool."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that lasts where ``TORCHBISECT_TEST_CACHE`` names one."""
    kept = os.environ.get("TORCHBISECT_TEST_CACHE")
    return Path(kept) if kept else tmp_path_factory.mktemp("cache")
