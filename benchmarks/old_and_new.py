"""Compare the cost of sandboxed runs of two checkouts of torchbisect, each with a Python of its own, in turns.

    python benchmarks/old_and_new.py OLD/.venv/bin/python NEW/.venv/bin/python [--image IMAGE] [--rounds 3]

``script`` is one ``torchbisect check`` of a small script, from the start of the command to its end. ``loop`` is thirty
questions to one agent, each about another script, as the minimizer puts hundreds of them. The environments are made
before. Processor seconds are those of the command and of all processes that it waited for, and in containers those
that the engine's control group counts beside it: they depend little on what else this machine does. Wall seconds are
shown too. For containers the engine must be used by nothing else, because the group counts all of its containers;
``--cgroup`` names it, as ``dockerd --cgroup-parent`` does.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_SCRIPT = """\
import torch
def step(x, w):
    return torch.tanh(x @ w).sum()
x, w = torch.randn(8, 8), torch.randn(8, 8, requires_grad=True)
torch.compile(step, backend="eager")(x, w).backward()
"""
_QUESTIONS = 30

#: A program for the Python of either checkout: it asks one agent about so many scripts. The older one has other names.
_LOOP = """
import sys
sandbox, version, folder, image, number = sys.argv[1:]
try:
    from torchbisect.containers.docker.environments import DockerEnvironments
    from torchbisect.containers.docker.images import ImageOptions
    from torchbisect.containers.index.indexes import Indexes
    from torchbisect.containers.python.interpreter import Interpreter
    from torchbisect.containers.store.cache import Cache
    from torchbisect.containers.venv.environments import VenvEnvironments
    from torchbisect.core.build import Build
    from torchbisect.core.repro import Repro, Settings
    from torchbisect.probe.agent_client import Agent
    indexes, shown = Indexes.from_configuration(), {"image": ImageOptions(image or None)}
except ImportError:
    from torchbisect.containers.builds import Build
    from torchbisect.containers.cache import Cache
    from torchbisect.containers.docker_environments import DockerEnvironments
    from torchbisect.containers.indexes import Indexes
    from torchbisect.containers.interpreters import Interpreter
    from torchbisect.containers.venvs import Venvs as VenvEnvironments
    from torchbisect.probe.client import Agent
    from torchbisect.probe.repro import Repro, Settings
    indexes, shown = Indexes.gather(), {"image": image or None}
if sandbox == "venv":
    environments = VenvEnvironments(Cache(folder), Interpreter.of(sys.executable), indexes)
else:
    environments = DockerEnvironments(Cache(folder), indexes, **shown)
with Agent(environments.environment(Build(version))) as agent:
    agent.start()
    for at in range(int(number)):
        found = agent.observe(Repro(SCRIPT.replace("sum()", f"sum() * {at + 1}")), Settings())
        assert found.eager.how == found.compiled.how == "finished", found
environments.close()
"""
_NO_MISMATCH = 1


@dataclass(frozen=True)
class Cost:
    """Processor and wall seconds of a command."""

    processor: float
    wall: float


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "pythons", nargs=2, metavar="PYTHON", type=os.path.abspath, help="of the old and the new checkout"
    )
    parser.add_argument("--torch", default="2.13.0")
    parser.add_argument("--image", help="as the command's own --image")
    parser.add_argument("--sandbox", choices=("venv", "docker"), action="append", help="default: both")
    parser.add_argument("--cgroup", default="docker", help="the parent of the engine's containers")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "repro.py").write_text(_SCRIPT)
        for sandbox in options.sandbox or ("venv", "docker"):
            _compare(sandbox, options, folder)
    return 0


def _compare(sandbox: str, options: argparse.Namespace, folder: str) -> None:
    taken: dict[tuple[str, int], list[Cost]] = {}
    for number in range(-1, options.rounds):
        for which, python in enumerate(options.pythons):
            cache = f"{folder}/cache-{which}"
            once, few, many = (
                _cost(command, folder, options.cgroup)
                for command in (
                    _check(python, sandbox, options, cache, f"{folder}/out-{time.time_ns()}"),
                    _loop(python, sandbox, options, cache, 2),
                    _loop(python, sandbox, options, cache, 2 + _QUESTIONS),
                )
            )
            if number >= 0:  # the first round makes the environments
                taken.setdefault(("script", which), []).append(once)
                loop = Cost(many.processor - few.processor, many.wall - few.wall)
                taken.setdefault(("loop", which), []).append(loop)
                print(f"  {sandbox} {('old', 'new')[which]} {once} {loop}", flush=True)
    for kind in ("script", "loop"):
        for unit in ("processor", "wall"):
            old, new = (statistics.median(getattr(one, unit) for one in taken[kind, which]) for which in (0, 1))
            print(
                f"{sandbox:7} {kind:7} {unit:10} old {old:7.2f} s, new {new:7.2f} s, ratio {new / old:.2f}", flush=True
            )


def _check(python: str, sandbox: str, options: argparse.Namespace, cache: str, out: str) -> list[str]:
    """Return the command of a check, in a folder of results of its own, so that no journal answers."""
    tool = str(Path(python).with_name("torchbisect"))
    image = ["--image", options.image] if options.image and sandbox == "docker" else []
    words = ["--sandbox", sandbox, *image, "--torch", options.torch, "--cache-dir", cache, "--out", out]
    return [tool, "check", *words, "repro.py"]


def _loop(python: str, sandbox: str, options: argparse.Namespace, cache: str, number: int) -> list[str]:
    program = f"SCRIPT = {_SCRIPT!r}\n{_LOOP}"
    return [python, "-c", program, sandbox, options.torch, cache, options.image or "", str(number)]


def _cost(command: list[str], folder: str, group: str) -> Cost:
    counted, begun = _counted(group), time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    said = process.stderr.read().decode()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != (_NO_MISMATCH if "check" in command else 0):
        raise SystemExit(f"{command[0]} ended with {process.returncode}:\n{said[-2000:]}")
    wall = time.perf_counter() - begun
    return Cost(used.ru_utime + used.ru_stime + _counted(group) - counted, wall)


def _counted(group: str) -> float:
    """Return the processor seconds of all containers so far, those that were removed among them."""
    first = Path("/sys/fs/cgroup/cpuacct", group, "cpuacct.usage")
    if first.exists():
        return int(first.read_text()) / 1e9
    second = Path("/sys/fs/cgroup", group, "cpu.stat")
    if second.exists():
        return int(second.read_text().split()[1]) / 1e6
    return 0.0


if __name__ == "__main__":
    sys.exit(main())
