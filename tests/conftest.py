"""Settings that all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("quick", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", parent=settings.get_profile("quick"), max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where two processes share the tests, keep together what shares something costly, and begin with the longest.

    A module's tests share their fixtures; all tests of the container engine share the one engine.
    """
    if not hasattr(config, "workerinput"):
        return
    for item in items:
        folder = item.path.parent
        item.add_marker(pytest.mark.xdist_group("engine" if folder.name == "engine" else _name(config, item.path)))
    items.sort(key=lambda item: (item.get_closest_marker("e2e") is None, item.get_closest_marker("torch") is None))


def _name(config: pytest.Config, path: Path) -> str:
    return str(path.relative_to(config.rootpath))
