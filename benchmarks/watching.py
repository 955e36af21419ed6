"""Measure what watching the limits of a run costs a question, in a venv and in a container.

    python benchmarks/watching.py [--image IMAGE] [--rounds 25]

Two agents each, one of which never looks at its runs, are asked the same questions in turns: one that takes a moment,
and one that computes for two seconds in each run. Processor seconds of the agent and its runs are compared, since they
depend little on what else this machine does; wall seconds are shown too.
"""

from __future__ import annotations

import argparse
import base64
import json
import statistics
import sys
import time
import zlib
from collections.abc import Sequence
from typing import Any
from unittest import mock

import psutil
from both_sandboxes import SCRIPT, both_sandboxes

from torchbisect.containers.environment import Environment
from torchbisect.core.repro import Repro, Settings
from torchbisect.probe import agent_bundle, agent_stream
from torchbisect.probe.agent_client import Agent

_LONG = SCRIPT + "import time\nuntil = time.process_time() + 2\nwhile time.process_time() < until: torch.tanh(x @ w)\n"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--image", help="as the command's own --image")
    parser.add_argument("--rounds", type=int, default=25)
    options = parser.parse_args(arguments)
    for name, environment in both_sandboxes(options.image):
        _compare(name, environment, options.rounds)
    return 0


def _without_watching() -> bytes:
    """Return the agent's modules, changed so that it never looks at a run."""
    sources = json.loads(zlib.decompress(base64.b64decode(agent_bundle.payload())))
    name, before = f"{agent_bundle.PACKAGE}.run.fork", "FIRST_CHECK_SECONDS = 0.3"
    assert before in sources[name]
    sources[name] = sources[name].replace(before, "FIRST_CHECK_SECONDS = 1e9")
    return base64.b64encode(zlib.compress(json.dumps(sources).encode())) + b"\n"


def _compare(name: str, environment: Environment, rounds: int) -> None:
    """Ask both agents in turns, and print the ratios of their medians and means."""
    with Agent(environment) as watching, Agent(environment) as other:
        watching.start()
        with mock.patch.object(agent_stream, "payload", _without_watching):
            other.start()
        for kind, source, number in (("short", SCRIPT, rounds), ("long", _LONG, max(3, rounds // 5))):
            taken = [[_ask(agent, source, at) for agent in (watching, other)] for at in range(-1, number)][1:]
            wall = [statistics.median(pair[at][0] for pair in taken) for at in (0, 1)]
            processor = [statistics.mean(pair[at][1] for pair in taken) for at in (0, 1)]
            print(
                f"{name:7} {kind:6} processor {processor[0]:.3f} s, ratio {processor[0] / processor[1]:.3f}; "
                f"wall {wall[0]:.3f} s, ratio {wall[0] / wall[1]:.3f}",
                flush=True,
            )


def _ask(agent: Agent, source: str, number: int) -> tuple[float, float]:
    """Return the wall and the processor seconds of a question."""
    process = _process(agent)
    begun, used = time.perf_counter(), _processor_seconds(process)
    found = agent.observe(Repro(source.format(number=number)), Settings())
    assert found.compiled.how == "finished", found
    return time.perf_counter() - begun, _processor_seconds(process) - used


def _process(agent: Agent) -> psutil.Process:
    """Return the process of an agent, which in a container is the child of the first one."""
    started: Any = agent._stream._process if agent._stream else None
    if hasattr(started, "pid"):
        return psutil.Process(started.pid)
    started._container.reload()
    return psutil.Process(started._container.attrs["State"]["Pid"]).children()[0]


def _processor_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system + times.children_user + times.children_system)


if __name__ == "__main__":
    sys.exit(main())
