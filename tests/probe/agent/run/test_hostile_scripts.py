"""Scripts that end badly or attack the agent get a named outcome, and the agent answers the next question."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import psutil
import pytest

from torchbisect.containers.environment import Venv
from torchbisect.core.repro import Repro, Settings
from torchbisect.probe.agent_client import Agent
from torchbisect.probe.judge.observation import Observation
from torchbisect.probe.limits import Limits

pytestmark = pytest.mark.torch

COMPILED = "import torch\nf = torch.compile(lambda x: x + 1, backend='eager')\nf(torch.ones(2))\n"
LIMITS = Limits(eager=20.0, compiled_factor=1.0, compiled_floor=20.0, memory=1 << 30, processes=32)


@pytest.fixture(scope="module")
def limited_agent(installed: Venv) -> Iterator[Agent]:
    """An agent with small limits."""
    with Agent(installed, LIMITS) as agent:
        yield agent


@pytest.fixture
def ask(limited_agent: Agent) -> Iterator[Callable[..., Observation]]:
    """Return a function that observes a script; check afterwards that the agent still answers and is alone."""
    limited_agent.start()
    started = limited_agent.started

    def observe(source: str, **limits: float) -> Observation:
        limited_agent.limits = replace(LIMITS, **limits)  # type: ignore[arg-type]
        return limited_agent.observe(Repro(source), Settings())

    yield observe
    limited_agent.limits = LIMITS
    seen = limited_agent.observe(Repro(COMPILED), Settings())
    assert (seen.eager.how, seen.compiled.how, seen.differences) == ("finished", "finished", ())
    assert limited_agent.started == started
    process = limited_agent._stream
    assert process is not None
    assert psutil.Process(process._process.pid).children(recursive=True) == []  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("source", "how", "status"),
    [
        ("import sys; sys.exit(3)", "exited", 3),
        ("import sys; sys.exit()", "exited", 0),
        ("import sys; sys.exit('a word')", "exited", 1),
        ("import os; os._exit(5)", "exited", 5),
        ("import atexit, os; atexit.register(lambda: os._exit(7))", "exited", 7),
        ("raise SystemExit(4)", "exited", 4),
    ],
)
def test_exits_keep_their_status(ask: Callable[..., Observation], source: str, how: str, status: int) -> None:
    seen = ask(COMPILED + source)
    assert (seen.eager.how, seen.eager.status) == (how, status)
    assert (seen.compiled.how, seen.compiled.status) == (how, status)


def test_a_signal_in_the_compiled_run_is_reported_there(ask: Callable[..., Observation]) -> None:
    bad = "def bad(gm, inputs):\n    import os, signal\n    os.kill(os.getpid(), signal.SIGSEGV)\n"
    seen = ask("import torch\n" + bad + "torch.compile(lambda x: x + 1, backend=bad)(torch.ones(2))")
    assert seen.eager.how == "finished"
    assert (seen.compiled.how, seen.compiled.signal) == ("signalled", "SIGSEGV")


def test_calls_before_the_crash_are_compared(ask: Callable[..., Observation]) -> None:
    script = """
import ctypes, torch
def bad(gm, inputs):
    return lambda *args: tuple(item + 1 for item in gm(*args))
f = torch.compile(lambda x: x * 1, backend=bad)
f(torch.ones(2))
if torch._dynamo.utils.counters["stats"]["unique_graphs"]:
    ctypes.string_at(0)
"""
    seen = ask(script)
    assert seen.compiled.signal == "SIGSEGV"
    assert [item.place for item in seen.differences][:1] == ["call 0 output"]


def test_an_endless_loop_times_out(ask: Callable[..., Observation]) -> None:
    assert ask(COMPILED + "while True: pass", eager=0.7).eager.how == "timed-out"


def test_a_hang_in_the_compiled_run_is_reported_there(ask: Callable[..., Observation]) -> None:
    bad = "import time\ndef bad(gm, inputs):\n    time.sleep(1000)\n"
    seen = ask(
        "import torch\n" + bad + "torch.compile(lambda x: x + 1, backend=bad)(torch.ones(2))", compiled_floor=1.5
    )
    assert (seen.eager.how, seen.compiled.how) == ("finished", "timed-out")


@pytest.mark.parametrize(
    "reading", ["input()", "sys.stdin.read()", "next(iter(sys.stdin))", "sys.stdin.buffer.read(1)"]
)
def test_reading_standard_input_is_noticed(ask: Callable[..., Observation], reading: str) -> None:
    seen = ask(f"import sys\ntry:\n    {reading}\nexcept (EOFError, StopIteration):\n    pass\n" + COMPILED)
    assert seen.eager.waited_for_input
    assert seen.compiled.how == "finished"


def test_long_output_is_truncated(ask: Callable[..., Observation]) -> None:
    flood = "import os\nblock = b'x' * (1 << 20)\nfor _ in range(100): os.write(1, block)\nprint('the end')\n"
    seen = ask(COMPILED + flood)
    assert seen.eager.how == "finished"
    assert seen.eager.output.endswith("the end\n")
    assert len(seen.eager.output) < 1 << 20
    assert seen.differences == ()


def test_a_fork_bomb_is_killed(ask: Callable[..., Observation]) -> None:
    seen = ask(COMPILED + "import os\nwhile True:\n    os.fork()\n")
    assert (seen.eager.how, seen.eager.limit) == ("over-limit", "processes")
    assert any("processes" in note for note in seen.notes)


def test_a_process_that_leaves_the_session_is_killed(ask: Callable[..., Observation]) -> None:
    runaway = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        time.sleep(1000)\n"
    runaway += "    os._exit(0)\n"
    assert ask(runaway + COMPILED).eager.how == "finished"


@pytest.mark.parametrize(
    "allocation",
    ["kept = []\nwhile True: kept.append(bytearray(1 << 26))", "kept = torch.ones(1 << 34)", "x = [0] * (1 << 40)"],
)
def test_the_memory_limit_is_reported_as_out_of_memory(ask: Callable[..., Observation], allocation: str) -> None:
    assert ask(COMPILED + allocation).eager.how == "out-of-memory"


def test_closing_all_descriptors_does_not_lose_the_record(ask: Callable[..., Observation]) -> None:
    seen = ask(COMPILED + "import os\nos.closerange(0, 1 << 16)\n")
    assert (seen.eager.how, seen.compiled.how) == ("finished", "finished")
    assert seen.compiled.compiled == 1


@pytest.mark.parametrize(
    "forged",
    [
        'print(\'{"id": 1, "answer": {}}\')',
        'import os\nos.write(1, b\'{"id": 2, "answer": null}\\n\')',
        "import sys\nsys.__stdout__.write('\\n{\"ready\": {}}\\n')",
        "import os\nfor number in range(3, 64):\n"
        '    try: os.write(number, b\'{"id": 3, "answer": {}}\\n\')\n    except OSError: pass',
    ],
)
def test_forged_answers_are_only_output(ask: Callable[..., Observation], forged: str) -> None:
    seen = ask(COMPILED + forged)
    assert (seen.eager.how, seen.compiled.how, seen.differences) == ("finished", "finished", ())


@pytest.mark.parametrize(
    "change",
    [
        "import sys, io\nsys.stdout = io.StringIO()\nprint('hidden')",
        "import sys\nsys.stdout = sys.stderr = None",
        "import json\njson.dumps = json.loads = None",
        "import os, pickle, mmap\nos.write = os.read = os.getpid.__class__",
        "torch.Tensor.clone = torch.Tensor.detach = torch.Tensor.cpu = None",
        "import sys\nsys.settrace(lambda *a: None)\nsys.setprofile(lambda *a: None)",
        "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,), daemon=True).start()",
        "import threading\nthreading.Thread(target=lambda: f(torch.ones(2))).start()",
        "import atexit\natexit.register(lambda: 1 / 0)",
        "import signal\nfor n in (1, 2, 10, 12, 15): signal.signal(n, signal.SIG_IGN)",
        "import multiprocessing\np = multiprocessing.Process(target=print, args=('hi',)); p.start(); p.join()",
        "import os\nif os.fork() == 0: f(torch.ones(2)); raise SystemExit(9)\nos.wait()",
        "import gc\ngc.disable(); gc.freeze()",
        "import sys\nsys.modules.clear()",
        "import builtins\nbuiltins.open = builtins.isinstance = None",
        "__builtins__ = None\nglobals().clear()",
        "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))",
        "import os, shutil\nshutil.rmtree(os.getcwd())",
        "import random, torch\ntorch.manual_seed(1)\nrandom.seed(None)",
        "class Odd:\n    def __repr__(self): raise ValueError\n    __hash__ = None\n"
        "    def __eq__(self, o): raise ValueError\nodd = Odd()",
        "class Endless(dict):\n    def items(self):\n        yield from ((i, i) for i in range(10 ** 5))\n"
        "endless = Endless()",
        "loop = []\nloop.append(loop)\ndeep = []\nfor _ in range(10 ** 4): deep = [deep]",
    ],
)
def test_changes_to_the_process_affect_no_other_run(ask: Callable[..., Observation], change: str) -> None:
    seen = ask(COMPILED + change)
    assert seen.eager.how == "finished", (seen.eager, seen.notes)
    assert seen.compiled.how == "finished", (seen.compiled, seen.notes)
    assert seen.differences == ()


def test_a_script_that_replaces_compile_counts_as_not_compiling(ask: Callable[..., Observation]) -> None:
    seen = ask("import torch\ntorch.compile = lambda f, **k: f\n" + COMPILED.partition("\n")[2])
    assert (seen.eager.how, seen.eager.compiled) == ("finished", 0)


def test_a_script_that_wraps_compile_is_still_compiled(ask: Callable[..., Observation]) -> None:
    wrap = "import torch\nreal = torch.compile\ntorch.compile = lambda f, **k: real(f, **k)\n"
    seen = ask(wrap + COMPILED.partition("\n")[2])
    assert (seen.compiled.compiled, seen.compiled.graphs) == (1, 1)


def test_a_killed_agent_is_started_again(installed: Venv) -> None:
    with Agent(installed, LIMITS) as agent:
        both = agent.observe(Repro("import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n"), Settings())
        assert both.eager.how == both.compiled.how == "lost"
        killer = "import os, torch\ndef bad(gm, inputs):\n    os.kill(os.getppid(), 9)\n    return gm\n"
        one = agent.observe(Repro(killer + "torch.compile(lambda x: x + 1, backend=bad)(torch.ones(2))"), Settings())
        assert (one.eager.how, one.compiled.how) == ("finished", "lost")
        assert agent.observe(Repro(COMPILED), Settings()).compiled.how == "finished"
        assert agent.started == 3
