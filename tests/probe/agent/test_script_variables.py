"""A variable that a script sets before it imports torch has its effect, as under plain Python."""

from __future__ import annotations

import pytest

from torchbisect.core.repro import Repro, Settings
from torchbisect.probe.agent_client import Agent

pytestmark = pytest.mark.torch

SCRIPT = """
import torch
from torch._inductor import config

if not config.freezing:
    raise SystemExit("TORCHINDUCTOR_FREEZING has no effect")
torch.compile(torch.sin, backend="eager")(torch.ones(2))
"""


def test_a_variable_that_torch_reads_when_it_is_imported(agent: Agent) -> None:
    started = agent.started
    without = agent.observe(Repro(SCRIPT), Settings())
    setting = Repro('import os\nos.environ["TORCHINDUCTOR_FREEZING"] = "1"\n' + SCRIPT)
    assert agent.observe(setting, Settings()).eager.how == "finished"
    assert agent.observe(setting, Settings()).eager.how == "finished"
    assert without.eager.how != "finished"
    assert agent.started <= started + 2
    assert agent.observe(Repro(SCRIPT), Settings()).eager.how != "finished"
