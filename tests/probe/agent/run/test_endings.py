"""Each way in which a compiled run ends differently is a mismatch, and the correct script beside it shows none.

The script brings a backend that misbehaves on any torch, or it shows a bug that the installed torch has.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest
from releases import TORCHES

from torchbisect.core.repro import Repro, Settings
from torchbisect.core.verdict import MismatchKind
from torchbisect.probe import agent_client
from torchbisect.probe.agent_client import Agent
from torchbisect.probe.judge.classify import find_mismatch
from torchbisect.probe.judge.observation import Observation
from torchbisect.probe.limits import Limits

pytestmark = pytest.mark.torch

on_each_torch = pytest.mark.parametrize("agent", TORCHES, indirect=True, scope="session")


class Case(NamedTuple):
    """A script with a ``{hole}`` for a wrong and a right statement, and the expected kind and exception."""

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
IS_COMPILING = "torch.compiler.is_compiling()"

CASES = [
    Case(
        "a backend's error", WHILE_COMPILING, "raise ValueError('no kernel')", "pass", MismatchKind.RAISES, "ValueError"
    ),
    Case(
        "an error in the compiled code",
        WHILE_RUNNING,
        "raise IndexError('no')",
        "pass",
        MismatchKind.RAISES,
        "IndexError",
    ),
    Case("a handler that is skipped", FALLBACK, "3", "2", MismatchKind.RAISES, "RuntimeError"),
    Case(
        "an assertion of the script",
        "@torch.compile(backend='eager')\ndef f(x):\n    return x + 1\nf(torch.ones(2))\nassert {hole}, 'compiled'\n",
        "not torch._dynamo.utils.counters['stats']['unique_graphs']",
        "torch._dynamo.utils.counters is not None",
        MismatchKind.RAISES,
        "AssertionError",
    ),
    Case(
        "another exception class",
        WHILE_COMPILING + "raise ValueError('out of range')\n",
        "raise KeyError('no kernel')",
        "pass",
        MismatchKind.RAISES_DIFFERENTLY,
        "KeyError",
    ),
    Case(
        "the same exception class at another statement",
        "f = torch.compile(lambda x: x + 1, backend='eager')\nbatch, weights = f(torch.ones(2)), None\n"
        "if {hole}:\n    raise ValueError('the batch is empty')\nraise ValueError('weights were never initialized')\n",
        "torch._dynamo.utils.counters['stats']['unique_graphs']",
        "False",
        MismatchKind.RAISES_DIFFERENTLY,
        "ValueError",
    ),
    Case(
        "an exit in place of an exception",
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
        f"not {IS_COMPILING}",
        "x.dim() > 1",
        MismatchKind.MISSING_RAISE,
        "ValueError",
    ),
    Case(
        "an index that is not checked",
        "def backend(gm, inputs):\n    return lambda *values: (values[0][:1].clone(),)\n"
        "torch.compile(lambda x, i: x.index_select(0, i), backend=backend)(torch.zeros(3), torch.tensor([{hole}]))\n",
        "7",
        "0",
        MismatchKind.MISSING_RAISE,
        "IndexError",
    ),
    Case(
        "an exit that does not happen",
        "import sys\n@torch.compile(backend='eager')\ndef f(x):\n    return x + 1\nf(torch.ones(2))\n"
        "if {hole}:\n    sys.exit(4)\n",
        "not torch._dynamo.utils.counters['stats']['unique_graphs']",
        "False",
        MismatchKind.MISSING_RAISE,
        "SystemExit",
    ),
    Case(
        "an invalid address", WHILE_RUNNING, "import ctypes; ctypes.string_at(0)", "pass", MismatchKind.CRASH, "SIGSEGV"
    ),
    Case("an abort", WHILE_COMPILING, "import os; os.abort()", "pass", MismatchKind.CRASH, "SIGABRT"),
    Case(
        "an invalid instruction",
        WHILE_RUNNING,
        "import signal; signal.raise_signal(signal.SIGILL)",
        "pass",
        MismatchKind.CRASH,
        "SIGILL",
    ),
    Case("a compiler that loops", WHILE_COMPILING, "while True: pass", "while False: pass", MismatchKind.HANG, ""),
    Case(
        "a lock that is never released",
        WHILE_RUNNING,
        "import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()",
        "import threading; lock = threading.Lock(); lock.acquire()",
        MismatchKind.HANG,
        "",
    ),
    Case(
        "a read that never returns", WHILE_RUNNING, "import os; os.read(os.pipe()[0], 1)", "pass", MismatchKind.HANG, ""
    ),
]


@pytest.fixture
def observe_hang(agent: Agent) -> Callable[[str], Observation]:
    """Return a function that observes a script with short time limits."""

    def ask(source: str) -> Observation:
        before, agent.limits = agent.limits, Limits(eager=30.0, compiled_factor=1.0, compiled_floor=3.0)
        try:
            return agent.observe(Repro("import torch\n" + source), Settings())
        finally:
            agent.limits = before

    return ask


LONG_COMPILE = """
import time
def never(graph, inputs):
    while True:
        time.sleep(0.1)
torch.compile(lambda x: x + 1, backend=never)(torch.ones(2))
"""


def test_a_compile_that_never_ends_is_shown_while_it_runs(
    agent: Agent, observe_hang: Callable[[str], Observation], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_client, "_LONG_SECONDS", 1.0)
    said = set()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(observe_hang, LONG_COMPILE)
        while not running.done():
            said.add(agent.activity)
            time.sleep(0.2)
    found = find_mismatch(running.result())
    assert found is not None
    assert found.kind is MismatchKind.HANG
    assert re.fullmatch(r"compiled does not end within \d s, eager finishes in \d\.\d s", found.summary)
    assert any(re.fullmatch(r"compiling for \d s; eager took \d\.\d s", text) for text in said)
    assert agent.activity == ""


@on_each_torch
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_wrong_script_is_reported_with_kind_and_exception(
    case: Case, observe: Callable[..., Observation], observe_hang: Callable[[str], Observation]
) -> None:
    source = case.script.replace("{hole}", case.wrong)
    seen = observe_hang(source) if case.kind is MismatchKind.HANG else observe(source)
    found = find_mismatch(seen, source)
    assert found is not None, seen
    assert (found.kind, found.signature.exception) == (case.kind, case.exception), found


@on_each_torch
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_right_script_is_no_mismatch(case: Case, observe: Callable[..., Observation]) -> None:
    source = case.script.replace("{hole}", case.right)
    seen = observe(source)
    assert seen.compiled.compiled
    assert find_mismatch(seen, source) is None, seen
