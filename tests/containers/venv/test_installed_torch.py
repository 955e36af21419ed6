"""The torch installed beside torchbisect: nothing is made, and it runs as any other build does."""

from __future__ import annotations

from pathlib import Path

import pytest

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
