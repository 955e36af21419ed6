"""Every way in which a compiled run can end other than the eager one, beside the script that must not be flagged.

What is wrong is a backend that the script brings along and that does it for good, or a bug of the torch that is here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest
from releases import TORCHES

from torchbisect.core.mismatch import MismatchKind
from torchbisect.core.repro import Repro, Settings
from torchbisect.probe.agent_client import Agent, Limits
from torchbisect.probe.judge.classify import mismatch_of
from torchbisect.probe.judge.observation import Observation

pytestmark = pytest.mark.torch

on_both = pytest.mark.parametrize("agent", TORCHES, indirect=True, scope="session")


class Case(NamedTuple):
    """A script with a hole for what is done wrong, and what the signature has to say of it."""

    name: str
    script: str
    wrong: str
    right: str
    kind: MismatchKind
    exception: str


WHILE_COMPILING = """
def backend(gm, inputs):
    {hole}
    return gm.forward
torch.compile(lambda x: x + 1, backend=backend)(torch.ones(2))
"""
WHILE_RUNNING = """
def backend(gm, inputs):
    def run(*values):
        {hole}
        return gm(*values)
    return run
torch.compile(lambda x: x + 1, backend=backend)(torch.ones(2))
"""
FALLBACK = """
@torch.compile(backend="eager")
def rows(x):
    try:
        return x.view({hole}, 4)
    except RuntimeError:
        return x.reshape(-1)
rows(torch.arange(8.0))
"""
IN_ONE = "torch.compiler.is_compiling()"

CASES = [
    Case(
        "a backend's error", WHILE_COMPILING, "raise ValueError('no kernel')", "pass", MismatchKind.RAISES, "ValueError"
    ),
    Case(
        "an error of what was compiled",
        WHILE_RUNNING,
        "raise IndexError('no')",
        "pass",
        MismatchKind.RAISES,
        "IndexError",
    ),
    Case("a handler that is skipped", FALLBACK, "3", "2", MismatchKind.RAISES, "RuntimeError"),
    Case(
        "an assertion of the script's",
        "@torch.compile(backend='eager')\ndef f(x):\n    return x + 1\nf(torch.ones(2))\nassert {hole}, 'compiled'\n",
        "not torch._dynamo.utils.counters['stats']['unique_graphs']",
        "torch._dynamo.utils.counters is not None",
        MismatchKind.RAISES,
        "AssertionError",
    ),
    Case(
        "another class",
        WHILE_COMPILING + "raise ValueError('out of range')\n",
        "raise KeyError('no kernel')",
        "pass",
        MismatchKind.RAISES_DIFFERENTLY,
        "KeyError",
    ),
    Case(
        "another statement",
        "f = torch.compile(lambda x: x + 1, backend='eager')\nbatch, weights = f(torch.ones(2)), None\n"
        "if {hole}:\n    raise ValueError('the batch is empty')\nraise ValueError('weights were never initialised')\n",
        "torch._dynamo.utils.counters['stats']['unique_graphs']",
        "False",
        MismatchKind.RAISES_DIFFERENTLY,
        "ValueError",
    ),
    Case(
        "an exit for an exception",
        "import sys\n@torch.compile(backend='eager')\ndef f(x):\n    return x + 1\nf(torch.ones(2))\n"
        "if {hole}:\n    sys.exit(4)\nraise ValueError('at the end')\n",
        "torch._dynamo.utils.counters['stats']['unique_graphs']",
        "False",
        MismatchKind.RAISES_DIFFERENTLY,
        "SystemExit",
    ),
    Case(
        "an error that is not raised",
        "@torch.compile(backend='eager')\ndef f(x):\n"
        "    if {hole}:\n        raise ValueError('negative')\n    return x\nf(torch.ones(2))\n",
        f"not {IN_ONE}",
        "x.dim() > 1",
        MismatchKind.MISSING_RAISE,
        "ValueError",
    ),
    Case(
        "an index that nobody checks",
        "def backend(gm, inputs):\n    return lambda *values: (values[0][:1].clone(),)\n"
        "torch.compile(lambda x, i: x.index_select(0, i), backend=backend)(torch.zeros(3), torch.tensor([{hole}]))\n",
        "7",
        "0",
        MismatchKind.MISSING_RAISE,
        "IndexError",
    ),
    Case(
        "an exit that isn't made",
        "import sys\n@torch.compile(backend='eager')\ndef f(x):\n    return x + 1\nf(torch.ones(2))\n"
        "if {hole}:\n    sys.exit(4)\n",
        "not torch._dynamo.utils.counters['stats']['unique_graphs']",
        "False",
        MismatchKind.MISSING_RAISE,
        "SystemExit",
    ),
    Case("a bad address", WHILE_RUNNING, "import ctypes; ctypes.string_at(0)", "pass", MismatchKind.CRASH, "SIGSEGV"),
    Case("an abort", WHILE_COMPILING, "import os; os.abort()", "pass", MismatchKind.CRASH, "SIGABRT"),
    Case(
        "an instruction that isn't there",
        WHILE_RUNNING,
        "import signal; signal.raise_signal(signal.SIGILL)",
        "pass",
        MismatchKind.CRASH,
        "SIGILL",
    ),
    Case("a compiler that loops", WHILE_COMPILING, "while True: pass", "while False: pass", MismatchKind.HANG, ""),
    Case(
        "a lock that is never let go",
        WHILE_RUNNING,
        "import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()",
        "import threading; lock = threading.Lock(); lock.acquire()",
        MismatchKind.HANG,
        "",
    ),
    Case(
        "a call that waits for nobody",
        WHILE_RUNNING,
        "import os; os.read(os.pipe()[0], 1)",
        "pass",
        MismatchKind.HANG,
        "",
    ),
]


@pytest.fixture
def hasty(agent: Agent) -> Callable[[str], Observation]:
    """Asks the shared agent, which for once waits no longer than it has to."""

    def ask(source: str) -> Observation:
        before, agent.limits = agent.limits, Limits(eager=30.0, compiled_factor=1.0, compiled_floor=3.0)
        try:
            return agent.observe(Repro("import torch\n" + source), Settings())
        finally:
            agent.limits = before

    return ask


@on_both
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_wrong_script_is_told_by_its_kind(
    case: Case, observe: Callable[..., Observation], hasty: Callable[[str], Observation]
) -> None:
    source = case.script.replace("{hole}", case.wrong)
    seen = hasty(source) if case.kind is MismatchKind.HANG else observe(source)
    found = mismatch_of(seen, source)
    assert found is not None, seen
    assert (found.kind, found.signature.exception) == (case.kind, case.exception), found


@on_both
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_right_script_is_no_mismatch(case: Case, observe: Callable[..., Observation]) -> None:
    source = case.script.replace("{hole}", case.right)
    seen = observe(source)
    assert seen.compiled.compiled
    assert mismatch_of(seen, source) is None, seen
