"""Settings that all tests share."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

settings.register_profile("quick", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("wide", parent=settings.get_profile("quick"), max_examples=680)
settings.register_profile("thorough", parent=settings.get_profile("quick"), max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

# A shell's background job ignores Ctrl-C, and so would every command that the tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = ["engine", "releases", "sample_reports"]


class KeepTogether(LoadFileScheduling):  # type: ignore[misc]
    """Where several processes share the tests, a module's tests stay together, and so do all of one engine's."""

    def _split_scope(self, nodeid: str) -> str:
        return "engine" if "/engine/" in nodeid else str(super()._split_scope(nodeid))


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> KeepTogether:
    return KeepTogether(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What takes longest comes first where several processes share the tests, and last where one runs them."""
    shared = hasattr(config, "workerinput")
    items.sort(key=lambda item: (item.get_closest_marker("e2e") is None) is shared)
