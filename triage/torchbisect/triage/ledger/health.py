"""The health check of a build: its compiler compiles, and a script that must go wrong does.

A build whose ``torch.compile`` silently does nothing agrees with eager on every script: each known bug would look
fixed. So a script known to be right is not enough. The second script has a backend of its own that returns wrong
numbers, and a build on which it agrees has not compiled it.
"""

from __future__ import annotations

from torchbisect.core.build import Build
from torchbisect.core.errors import InstallFailed
from torchbisect.core.repro import Repro, Settings
from torchbisect.pipeline.session import Session
from torchbisect.probe.agent_client import AgentFailed
from torchbisect.probe.judge.sanity_check import KNOWN_GOOD_SCRIPT

KNOWN_BAD_SCRIPT = """\
import torch
def wrong(graph, inputs):
    return lambda *values: tuple(value + 1 for value in graph.forward(*values))
def f(x):
    return x * 2 + 1
print(torch.compile(f, backend=wrong)(torch.ones(4)))
"""
"""Wrong wherever ``torch.compile`` calls its backend: on every torch from 2.0 on."""


def unhealthy_reason(session: Session, build: Build) -> str | None:
    """Return why a build's answers are no evidence, or ``None``. Raises ``MachineError`` if this machine fails."""
    try:
        with session.failing_oracle(build) as oracle:
            right = Repro(KNOWN_GOOD_SCRIPT)
            untestable = oracle.untestable(right, Settings(backend="eager"))
            if untestable is not None:
                return untestable.detail
            mismatch = oracle.mismatch(right, Settings(backend="eager"))
            if mismatch is not None:
                return f"a script known to be right differs there: {mismatch.summary}"
            untestable = oracle.untestable(Repro(KNOWN_BAD_SCRIPT))
            if untestable is not None:
                return untestable.detail
            if oracle.mismatch(Repro(KNOWN_BAD_SCRIPT)) is None:
                return "its torch.compile compiles nothing: a script with a backend that is wrong agrees with eager"
    except InstallFailed as error:
        return f"{error.reason}: {error}"
    except AgentFailed as error:
        return str(error)
    return None
