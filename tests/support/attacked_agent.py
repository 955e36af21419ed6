"""An agent that scripts attack, of the user who runs the tests or of one without rights."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from torchbisect.containers.environment import Venv
from torchbisect.containers.process.processes import HostProcess
from torchbisect.core.repro import Repro, Settings
from torchbisect.probe.agent_client import Agent
from torchbisect.probe.judge.observation import Observation
from torchbisect.probe.limits import Limits

COMPILED = "import torch\nf = torch.compile(lambda x: x + 1, backend='eager')\nf(torch.ones(2))\n"
LIMITS = Limits(eager=20.0, compiled_factor=1.0, compiled_floor=20.0, memory=1 << 30, processes=32, files=20_000)


class AsNobody:
    """The installed torch, run by a user without rights."""

    local = False
    compiler_cache = None

    def __init__(self, venv: Venv, home: str) -> None:
        self.build, self.facts, self._python, self._home = venv.build, venv.facts, str(venv.python), home

    def start(self, arguments: Sequence[str], extra: Mapping[str, str] | None = None) -> HostProcess:
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"]
        variables = {"PATH": os.defpath, "HOME": self._home, "TMPDIR": self._home, **(extra or {})}
        variables.pop("TORCHBISECT_OWN_MACHINE", None)  # /dev/shm is this machine's
        return HostProcess([*command, self._python, *arguments], environment=variables, directory=self._home)


def ask(agent: Agent, source: str) -> Observation:
    return agent.observe(Repro(source), Settings())


def agrees(seen: Observation) -> bool:
    return (seen.eager.how, seen.compiled.how, seen.differences) == ("finished", "finished", ())
