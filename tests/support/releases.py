"""The torch that is installed beside the tests, and older releases, each installed once for all tests of a run."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from torchbisect.containers.environment import Environment
from torchbisect.containers.index.indexes import Indexes
from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.containers.store.cache import Cache
from torchbisect.containers.venv.environments import VenvEnvironments
from torchbisect.core.build import Build, Channel

#: The torches of tables that are held against two of them, for ``parametrize``.
TORCHES = ["installed", pytest.param("2.8.0", marks=pytest.mark.long)]


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all tests; a developer may name one that lasts with ``TORCHBISECT_TEST_CACHE``."""
    kept = os.environ.get("TORCHBISECT_TEST_CACHE")
    if kept:
        return Path(kept)
    alone = "PYTEST_XDIST_WORKER" not in os.environ
    return tmp_path_factory.mktemp("cache") if alone else tmp_path_factory.getbasetemp().parent / "cache"


@pytest.fixture(scope="session")
def torch_of(cache: Path) -> Iterator[Callable[[str], Environment]]:
    """The environment of a release by its version, or of ``installed``."""
    interpreter = Interpreter.of(Path(sys.executable))
    venvs = VenvEnvironments(Cache(cache), interpreter, Indexes.from_configuration())

    def environment(version: str) -> Environment:
        here = version == "installed"
        return venvs.environment(
            Build(str(interpreter.installed_torch), Channel.INSTALLED) if here else Build(version, Channel.RELEASE)
        )

    yield environment
    venvs.close()
