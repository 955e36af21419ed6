"""Settings that all tests share: hypothesis profiles, fixtures, and how processes share the tests."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from itertools import chain, combinations
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

settings.register_profile("default", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("small", parent=settings.get_profile("default"), max_examples=10)
settings.register_profile("wide", parent=settings.get_profile("default"), max_examples=680)
settings.register_profile("thorough", parent=settings.get_profile("default"), max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# A shell's background job ignores Ctrl-C, and so would every command that the tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Options that a developer sets in the shell are none of the tests'; these variables are.
_OF_THE_TESTS = re.compile(r"TORCHBISECT_(?:TEST_|CORPUS|FAULTS|ALL_BODIES)")
for name in [name for name in os.environ if name.startswith("TORCHBISECT_") and not _OF_THE_TESTS.match(name)]:
    del os.environ[name]

MARKS = ("torch", "e2e", "slow", "long")

pytest_plugins = ["engine", "releases", "running", "sample_reports"]


class OneEngineScheduling(LoadFileScheduling):  # type: ignore[misc]
    """Keep a module's tests in one process, and all tests of the container engine too."""

    def _split_scope(self, nodeid: str) -> str:
        return "engine" if "containers/docker/" in nodeid else str(super()._split_scope(nodeid))


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> OneEngineScheduling:
    return OneEngineScheduling(config, log)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Pass over a module that ``-m`` deselects whole, by its ``pytestmark``: importing torch takes five seconds."""
    if collection_path.suffix != ".py" or not config.option.markexpr:
        return None
    line = re.search(r"^pytestmark = (.*)$", collection_path.read_text(), re.M)
    marks = set(re.findall(r"pytest\.mark\.(\w+)", line[1])) if line else set()
    wanted = Expression.compile(config.option.markexpr)
    # A test of the module can have any other mark besides.
    possible = chain.from_iterable(combinations(MARKS, count) for count in range(len(MARKS) + 1))
    return None if any(wanted.evaluate(_matcher(marks.union(others))) for others in possible) else True


def _matcher(marks: set[str]) -> Callable[..., bool]:
    return lambda name, **_: name in marks


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what would begin after ``TESTS_UNTIL`` (seconds since 1970): a slow machine leaves long tests out."""
    until = os.environ.get("TESTS_UNTIL")
    if until and time.time() > float(until):
        pytest.skip("the time for these tests is over")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out long tests unless ``-m`` names them; run the slowest first where several processes share the tests."""
    if "long" not in config.option.markexpr:
        long = [item for item in items if item.get_closest_marker("long")]
        items[:] = [item for item in items if not item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=long)
    shared = hasattr(config, "workerinput")
    items.sort(key=slowness, reverse=shared)


def slowness(item: pytest.Item) -> int:
    """Return 3 for a test that installs a torch or is long, 2 for one with the installed torch, 1 for a slow one."""
    if item.get_closest_marker("e2e") or item.get_closest_marker("long"):
        return 3
    if item.get_closest_marker("torch"):
        return 2
    return 1 if item.get_closest_marker("slow") else 0
