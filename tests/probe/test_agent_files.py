"""An agent that shares no folder with this machine, as in a container: the files come over the protocol."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from torchbisect.containers.environment import Facts, Venv
from torchbisect.core.build import Build
from torchbisect.core.repro import Settings
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.script import opened_repro
from torchbisect.probe.agent_client import Agent

pytestmark = pytest.mark.torch

SCRIPT = """
import os
import torch

assert open("data/a.txt").read() == "x"
assert open("latest/a.txt").read() == "x"
assert os.path.getsize("large.bin") == 9 << 20
assert os.access("run.sh", os.X_OK)
assert sorted(os.listdir()) == ["data", "empty", "large.bin", "latest", "run.sh", "train.py"], os.listdir()
open("data/a.txt", "w").write("changed")
os.rmdir("empty")
print(torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2)))
"""


@dataclass(frozen=True)
class Apart(Venv):
    """An environment whose processes are told of no folder of this machine."""

    local: ClassVar[bool] = False


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    with Agent(Apart(Build("0"), Facts("0", None, "3", "here"), Path(sys.executable), tmp_path)) as agent:
        yield agent


def test_the_files_are_sent_once_and_again_to_a_new_agent(
    agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, copy = tmp_path / "folder", tmp_path / "copy"
    for place in (folder / "data", folder / "empty", copy):
        place.mkdir(parents=True)
    (folder / "data" / "a.txt").write_text("x")
    (folder / "latest").symlink_to("data")
    (folder / "large.bin").write_bytes(bytes(9 << 20))
    (folder / "run.sh").write_text("")
    (folder / "run.sh").chmod(0o755)
    (folder / "train.py").write_text(SCRIPT)
    monkeypatch.chdir(folder)
    repro = opened_repro(Options(Path("train.py")), copy).repro
    for _ in range(2):
        observed = agent.observe(repro, Settings())
        assert (observed.eager.how, observed.compiled.how) == ("finished", "finished"), observed.eager.errors
    agent.close()
    assert agent.observe(repro.with_source(SCRIPT + "# again\n"), Settings()).compiled.how == "finished"
