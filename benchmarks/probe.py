"""Measure the cost of a question beside a fresh process for the same script, in one run, as ratios.

    python benchmarks/probe.py [--python VENV/bin/python] [--rounds 5]

A fresh process is plain ``python``, which imports torch and runs the script once, compiled. An ask is both runs, the
comparison and the verdict. ``changed`` asks about another text each time, as the minimizer does; ``unchanged`` asks
about one text under other settings, as localization does, so that its eager half is not run again. Every ask has
compiler caches of its own: with inductor each one is cold.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence

from torchbisect.containers.index.indexes import Indexes
from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.containers.store.cache import Cache
from torchbisect.containers.venv.environments import VenvEnvironments
from torchbisect.core.build import Build, Channel
from torchbisect.core.repro import Repro, Settings
from torchbisect.core.verdict import MismatchKind
from torchbisect.probe.journal import Journal
from torchbisect.probe.judge.matching import Strictness
from torchbisect.probe.judge.signature import Signature
from torchbisect.probe.oracle import Question
from torchbisect.probe.probe import Probe
from torchbisect.probe.probe_options import ProbeOptions
from torchbisect.probe.standalone_run import run_plain

BACKENDS = ("eager", "aot_eager", "inductor")
SOURCE = """\
import torch
def step(x, w):
    return torch.tanh(x @ w).square().sum()
x, w = torch.randn(8, 8), torch.randn(8, 8, requires_grad=True)
torch.compile(step, backend={backend!r})(x, w).backward()
print(w.grad.sum())
"""
_ANY = Signature(MismatchKind.VALUES, attribute="value", place="output")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--python", default=sys.executable, help="an interpreter with a torch")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    interpreter = Interpreter.of(options.python)
    with tempfile.TemporaryDirectory() as cache:
        environment = VenvEnvironments(Cache(cache), interpreter, Indexes.from_configuration()).environment(
            Build(str(interpreter.installed_torch), Channel.INSTALLED)
        )
        print(f"torch {environment.facts.torch}, median of {options.rounds}")
        print(f"{'backend':10} {'fresh process':>14} {'changed':>9} {'ratio':>6} {'unchanged':>10} {'ratio':>6}")
        with Probe(environment, Journal(), ProbeOptions(check_every=0)) as probe:
            for backend in BACKENDS:
                source = SOURCE.format(backend=backend)
                fresh = _median(options.rounds, lambda number: run_plain(environment, source))  # noqa: B023
                changed = _median(options.rounds, _changed(probe, source))
                unchanged = _median(options.rounds, _unchanged(probe, source))
                ratios = f"{fresh / changed:6.1f} {unchanged:9.2f}s {fresh / unchanged:6.1f}"
                print(f"{backend:10} {fresh:13.2f}s {changed:8.2f}s {ratios}", flush=True)
    return 0


def _changed(probe: Probe, source: str) -> Callable[[int], object]:
    return lambda number: probe.ask(Question(Repro(f"{source}# {number}\n"), _ANY))


def _unchanged(probe: Probe, source: str) -> Callable[[int], object]:
    """The setting that differs from ask to ask changes nothing in what is compiled."""

    def ask(number: int) -> object:
        settings = Settings(knobs=(("_dynamo.config.cache_size_limit", 100 + number),))
        return probe.ask(Question(Repro(source), _ANY, settings, Strictness.STRICT))

    return ask


def _median(rounds: int, run: Callable[[int], object]) -> float:
    """Seconds; the first round, in which an agent starts and files come into memory, is not among them."""
    seconds = []
    for number in range(rounds + 1):
        started = time.perf_counter()
        run(number)
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds[1:])


if __name__ == "__main__":
    raise SystemExit(main())
