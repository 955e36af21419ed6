"""Measure the cost of a container beside a venv, in one run, with the torch that is installed here in both.

    python benchmarks/containers.py [--image IMAGE] [--rounds 9]

``start`` is an empty program in a prepared environment, from the call to the end of what was made for it; ``ready`` is
the agent's start, imports of torch included; ``ask`` is one question to the agent, as the minimizer puts hundreds of
them. The first two are paid once a build or so, the last every time.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence

from both_sandboxes import SCRIPT, both_sandboxes

from torchbisect.containers.environment import Environment
from torchbisect.core.repro import Repro, Settings
from torchbisect.probe.agent_client import Agent


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--image", help="as the command's own --image")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args(arguments)
    rows, build = [], ""
    for name, environment in both_sandboxes(options.image):
        rows.append((name, _measure(environment, options.rounds)))
        build = environment.build.name
    print(f"torch {build}, median of {options.rounds}")
    print(f"{'sandbox':8} {'start':>8} {'ready':>8} {'ask':>8}")
    for name, seconds in rows:
        print(f"{name:8}" + "".join(f" {one:7.3f}s" for one in seconds))
    (_, first), (_, second) = rows
    print(f"{'more':8}" + "".join(f" {after - before:+7.3f}s" for before, after in zip(first, second, strict=True)))
    print(f"{'ratio':8}" + "".join(f" {after / before:8.2f}" for before, after in zip(first, second, strict=True)))
    return 0


def _measure(environment: Environment, rounds: int) -> tuple[float, float, float]:
    """Seconds of an empty program, of the agent's start, and of one question."""

    def start(_: int) -> None:
        done = environment.run(["-S", "-c", "pass"], timeout=60)
        assert done.status == 0, done

    def ready(_: int) -> None:
        with Agent(environment) as agent:
            agent.start()

    with Agent(environment) as agent:
        agent.start()

        def ask(number: int) -> None:
            found = agent.observe(Repro(SCRIPT.format(number=number)), Settings())
            assert found.eager.how == found.compiled.how == "finished", found

        return _median(rounds, start), _median(max(3, rounds // 3), ready), _median(rounds, ask)


def _median(rounds: int, act: Callable[[int], None]) -> float:
    act(-1)
    taken = []
    for number in range(rounds):
        begun = time.perf_counter()
        act(number)
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken)


if __name__ == "__main__":
    sys.exit(main())
