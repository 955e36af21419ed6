"""Settings that all tests share: hypothesis profiles, fixtures, and how processes share the tests."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

settings.register_profile("default", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("small", parent=settings.get_profile("default"), max_examples=10)
settings.register_profile("wide", parent=settings.get_profile("default"), max_examples=680)
settings.register_profile("thorough", parent=settings.get_profile("default"), max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# A shell's background job ignores Ctrl-C, and so would every command that the tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = ["engine", "releases", "running", "sample_reports"]


class OneEngineScheduling(LoadFileScheduling):  # type: ignore[misc]
    """Keep a module's tests in one process, and all tests of the container engine too."""

    def _split_scope(self, nodeid: str) -> str:
        return "engine" if "containers/docker/" in nodeid else str(super()._split_scope(nodeid))


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> OneEngineScheduling:
    return OneEngineScheduling(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out long tests unless ``-m`` names them; run the slowest first where several processes share the tests."""
    if "long" not in config.option.markexpr:
        long = [item for item in items if item.get_closest_marker("long")]
        items[:] = [item for item in items if not item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=long)
    shared = hasattr(config, "workerinput")
    items.sort(key=slowness, reverse=shared)


def slowness(item: pytest.Item) -> int:
    """Return 2 for a test that installs a torch or is long, 1 for one that runs the installed torch, else 0."""
    if item.get_closest_marker("e2e") or item.get_closest_marker("long"):
        return 2
    return 1 if item.get_closest_marker("torch") else 0
