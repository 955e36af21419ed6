"""Mismatches by a bound or a command of the user, beside correct scripts that must not be reported.

Slow scripts bring a backend that is slow on any torch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest
from releases import TORCHES

from torchbisect.containers.environment import Environment
from torchbisect.core.repro import Repro, Settings
from torchbisect.core.verdict import Answer, MismatchKind
from torchbisect.probe.agent_client import Agent
from torchbisect.probe.journal import Journal
from torchbisect.probe.judge.slowness import Bounds, find_slowness
from torchbisect.probe.oracle import Question
from torchbisect.probe.test_command import CommandProbe

pytestmark = pytest.mark.torch


class Slow(NamedTuple):
    """A script with a ``{hole}`` for a slow and a fast statement, and the bound that the slow one exceeds."""

    attribute: str
    bounds: Bounds
    script: str
    wrong: str
    right: str


# One thread: on a busy machine a second thread can slow down one run and not the other.
BACKEND = """
import time
torch.set_num_threads(1)
def backend(graph, inputs):
    {compiling}
    def run(*values):
        {running}
        return graph(*values)
    return run
f = torch.compile(lambda x: x @ x, backend=backend)
for _ in range(5):
    f(torch.ones(200, 200))
"""
SLOW = [
    Slow("run time", Bounds(slower_than=5.0), BACKEND.replace("{compiling}", "pass"), "time.sleep(0.1)", "pass"),
    Slow(
        "compile time",
        Bounds(compile_seconds=2.5),
        BACKEND.replace("{running}", "pass"),
        "time.sleep(3)",
        "time.sleep(0.1)",
    ),
    Slow(
        "recompiles",
        Bounds(recompiles=1),
        "f = torch.compile(lambda x, n: x * n, backend='eager', dynamic=False)\n"
        "for n in range(4): f(torch.ones(2), {hole})\n",
        "n",
        "n > 2",
    ),
    Slow(
        "graph breaks",
        Bounds(graph_breaks=0),
        "@torch.compile(backend='eager')\ndef f(x):\n    x = x + 1\n    {hole}\n    return x * 2\nf(torch.ones(2))\n",
        "torch._dynamo.graph_break()",
        "x = x.sin()",
    ),
]


@pytest.mark.parametrize("agent", TORCHES, indirect=True, scope="session")
@pytest.mark.parametrize("case", SLOW, ids=[case.attribute for case in SLOW])
def test_only_the_slow_script_exceeds_the_bound(case: Slow, agent: Agent) -> None:
    found = []
    for hole in (case.wrong, case.right):
        source = case.script
        for name in ("{hole}", "{compiling}", "{running}"):
            source = source.replace(name, hole)
        found.append(
            find_slowness(agent.observe(Repro("import torch\n" + source), Settings(), prewarm=True), case.bounds)
        )
    assert found[0] is not None
    assert (found[0].kind, found[0].attribute) == (MismatchKind.SLOW, case.attribute)
    assert found[1] is None


SCRIPT = """\
import os, sys, torch
def backend(graph, inputs):
    return lambda *values: tuple(value * {factor} for value in graph(*values))
y = torch.compile(lambda x: x + 1, backend=backend)(torch.ones(2))
{then}
"""
COMMANDS = [
    ("it exits", "sys.exit(int(bool((y != 2).any())))", "exit status 1"),
    ("it crashes", "(y == 2).all() or os.abort()", "crashes with SIGABRT"),
    ("it prints", "print('sum', y.sum().item())", "exit status 1"),
]


@pytest.mark.parametrize("version", TORCHES)
@pytest.mark.parametrize(
    ("name", "then", "words"), [COMMANDS[0], *(pytest.param(*case, marks=pytest.mark.long) for case in COMMANDS[1:])]
)
def test_the_users_command_decides(
    name: str, then: str, words: str, version: str, torch_of: Callable[[str], Environment]
) -> None:
    command = "python $TORCHBISECT_SCRIPT" + (" | grep -q 'sum 4'" if name == "it prints" else "")
    probe = CommandProbe(torch_of(version), Journal(), command)
    wrong, right = (Repro(SCRIPT.format(factor=factor, then=then)) for factor in (2, 1))
    found = probe.mismatch(wrong)
    assert found is not None, probe.run(wrong)
    assert found.kind is MismatchKind.COMMAND
    assert words in found.summary
    assert probe.mismatch(right) is None
    assert probe.ask(Question(right, found.signature)).answer is Answer.NONE
