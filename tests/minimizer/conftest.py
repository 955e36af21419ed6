"""The torch that is installed beside torchbisect, for reductions of its real bugs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from torchbisect.containers.cache import Cache
from torchbisect.containers.indexes import Indexes
from torchbisect.containers.interpreters import Interpreter
from torchbisect.containers.venvs import Venvs, installed_build
from torchbisect.probe.journal import Journal
from torchbisect.probe.probe import Probe


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Probe]:
    """Questions to the torch beside this Python."""
    interpreter = Interpreter.of(Path(sys.executable))
    venvs = Venvs(Cache(tmp_path_factory.mktemp("cache")), interpreter, Indexes.gather())
    with Probe(venvs.environment(installed_build(interpreter)), Journal()) as probe:
        yield probe
    venvs.close()
