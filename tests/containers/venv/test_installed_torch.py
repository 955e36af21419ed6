"""The torch installed beside torchbisect: nothing is made, and it runs as any other build does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from installed_torch import BROKEN, VERSION, install_torch

from torchbisect.containers.environment import Venv, check_import, read_facts
from torchbisect.containers.index.indexes import Indexes
from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.containers.store.cache import Cache
from torchbisect.containers.venv.environments import VenvEnvironments
from torchbisect.core.build import Build, Channel
from torchbisect.core.errors import InstallFailed

pytestmark = pytest.mark.torch


def test_the_installed_torch_is_used_unchanged(tmp_path: Path, interpreter: Interpreter) -> None:
    build = Build(str(interpreter.installed_torch), Channel.INSTALLED)
    venvs = VenvEnvironments(Cache(tmp_path), interpreter, Indexes(tmp_path.as_uri()))
    try:
        assert venvs.has(build)
        environment = venvs.environment(build)
        assert environment.facts.torch == interpreter.installed_torch
        assert environment.facts.git_version
        assert environment.facts.python == interpreter.version
        process = environment.start(["-c", "import torch; print(torch.__version__, flush=True); input()"])
        assert process.read_line(120) == f"{interpreter.installed_torch}\n".encode()
        process.send(b"\n")
        assert process.read_line(60) == b""
        assert process.kill() == 0
        done = environment.run(["-c", "import torch; print(torch.ones(2).sum().item())"], timeout=120)
        assert (done.status, done.output) == (0, "2.0\n")
        with pytest.raises(InstallFailed) as caught:
            venvs.environment(Build("1.0", Channel.INSTALLED))
        assert caught.value.reason == "other-version"
        venvs.release(build)
        assert list((tmp_path / "venvs").iterdir()) == []
    finally:
        venvs.close()
    assert not environment.homes.exists()


def test_the_facts_of_its_files_are_those_of_its_import(tmp_path: Path, interpreter: Interpreter) -> None:
    build = Build(str(interpreter.installed_torch), Channel.INSTALLED)
    venvs = VenvEnvironments(Cache(tmp_path), interpreter, Indexes(tmp_path.as_uri()))
    try:
        environment = venvs.environment(build)
        assert read_facts(environment.run, build) == environment.facts
    finally:
        venvs.close()


Installed = Callable[[Mapping[str, str]], Venv]


@pytest.fixture
def installed(tmp_path: Path) -> Iterator[Installed]:
    """Return a function that returns the environment of an installed torch with these files."""
    with ExitStack() as stack:

        def make(files: Mapping[str, str]) -> Venv:
            interpreter = Interpreter.of(install_torch(tmp_path / "python", files))
            venvs = VenvEnvironments(Cache(tmp_path / "cache"), interpreter, Indexes(tmp_path.as_uri()))
            stack.callback(venvs.close)
            return venvs.environment(Build(VERSION, Channel.INSTALLED))

        yield make


def test_an_installed_torch_that_cannot_be_imported_has_facts(installed: Installed) -> None:
    environment = installed(BROKEN)
    facts = environment.facts
    assert (facts.torch, facts.git_version, facts.cuda) == (VERSION, "c0ffee", "13.0")
    with pytest.raises(InstallFailed, match="libcudnn"):
        check_import(environment)


def test_an_installed_torch_whose_files_lack_the_facts_is_imported(installed: Installed) -> None:
    environment = installed({"__init__.py": f"__version__ = '{VERSION}'\n"})
    assert (environment.facts.torch, environment.facts.git_version) == (VERSION, None)
    check_import(environment)


def test_an_installed_torch_without_facts_that_cannot_be_imported_is_refused(installed: Installed) -> None:
    with pytest.raises(InstallFailed, match="libcudnn"):
        installed({"__init__.py": BROKEN["__init__.py"]})
