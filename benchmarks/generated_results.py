"""Reduce programs, and print for each how small it got, what that cost, and if the result stands alone."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from generate import TEST_SEEDS, generated
from generated_bugs import BUGS
from minimizer_cases import Case, StartingPoint, count_nodes, starting_point

from torchbisect.core.repro import Repro
from torchbisect.minimizer.standalone.assertions import standalone_candidates
from torchbisect.probe.judge.environment_faults import ended_badly
from torchbisect.probe.probe import Probe
from torchbisect.probe.standalone_run import plain_runs_side_by_side

Reduce = Callable[[StartingPoint], tuple[str, int]]
"""Reduces from a starting point; returns the result and the number of questions."""

Peers = Mapping[str, Callable[[StartingPoint, float], str]]
"""Other tools by name; each reduces from a starting point in so many seconds and returns its result."""


@dataclass(frozen=True)
class Result:
    """The reduction of one program.

    Attributes:
        before, nodes: of the program's and the result's syntax trees.
        times: ``nodes`` divided by those of the script that a person wrote.
        whole_times: the nodes of ``alone``, with the assertion that is added, divided by the same.
        alone: the text that fails under plain Python, and only with ``torch.compile``; empty if none was found.
        about: the result shows the mismatch of the program.
        peer: the peer with the smallest result after as long a time; empty if there was none.
        peer_times: its nodes divided by those of the script that a person wrote.
    """

    case: str
    before: int
    nodes: int
    times: float
    asked: int
    seconds: float
    text: str
    alone: str
    about: bool
    whole_times: float
    peer: str = ""
    peer_times: float = 0.0

    def line(self) -> str:
        """Return its line of the table."""
        size = f"{self.before} | {self.nodes} | {self.times:.2f}"
        alone, about = ("yes" if answer else "no" for answer in (self.alone, self.about))
        peer = f" {self.peer} | {self.peer_times:.2f} |" if self.peer else ""
        return f"| {self.case} | {size} | {self.asked} | {self.seconds:.0f} | {alone} | {about} |{peer}"


def print_table(probes: list[Probe], programs: Iterable[Case], reduce: Reduce, peers: Peers, keep: Path | None) -> None:
    """Reduce programs; print a line each, then the median and 95th percentile, and how many stand alone.

    Each peer has as long as the reduction took, and a line names the one with the smallest result.
    """
    print(
        "| case | nodes | result | x by hand | questions | seconds | stands alone | same mismatch |"
        + (" best peer | x by hand |" if peers else "")
    )
    print("|---" * (10 if peers else 8) + "|")
    results = []
    for case in programs:
        found = starting_point(probes, case)
        if found is None:
            print(f"| {case.name} | shows no mismatch here |", flush=True)
            continue
        result = measured(found, case, reduce, peers)
        print(result.line(), flush=True)
        results.append(result)
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            (keep / f"{case.name}.large.py").write_text(case.large)
            (keep / f"{case.name}.py").write_text(result.alone or result.text)
    for name in ("times", "whole_times", "asked", *(["peer_times"] if peers else [])) if results else ():
        values = sorted(float(getattr(result, name)) for result in results)
        high = values[min(len(values) - 1, int(0.95 * len(values)))]
        print(f"{name}: median {statistics.median(values):.2f}, 95th percentile {high:.2f}, most {values[-1]:.2f}")
    if results:
        alone, about = sum(bool(item.alone) for item in results), sum(item.about for item in results)
        print(f"{alone} of {len(results)} stand alone, {about} show the same mismatch")


def cases(wanted: str) -> Iterator[Case]:
    """Grow the programs that ``detach,deque:0-3`` or ``all:test`` names.

    ``all`` stands for every bug, and ``test`` for the seeds of the test set among the first twenty.
    """
    names, _, seeds = wanted.partition(":")
    first, _, last = seeds.partition("-")
    chosen = TEST_SEEDS if seeds == "test" else range(int(first), int(last or first) + 1)
    for seed in chosen:
        for name in BUGS if names == "all" else names.split(","):
            yield Case(f"{name}-{seed}", generated(BUGS[name], seed), BUGS[name].minimal)


def measured(begin: StartingPoint, case: Case, reduce: Reduce, peers: Peers) -> Result:
    """Reduce one program, and look for a form of the result that stands alone."""
    began = time.monotonic()
    text, asked = reduce(begin)
    seconds, size, by_hand = time.monotonic() - began, count_nodes(text), count_nodes(case.minimal)
    about = begin.probe.ask(begin.question(text)).same
    alone = _standing_alone(begin.probe, text)
    least, peer = min(((count_nodes(run(begin, seconds)), name) for name, run in peers.items()), default=(0, ""))
    before, times, whole = count_nodes(case.large), size / by_hand, count_nodes(alone or text) / by_hand
    return Result(case.name, before, size, times, asked, seconds, text, alone, about, whole, peer, least / by_hand)


def _standing_alone(probe: Probe, text: str) -> str:
    seen = probe.mismatch(Repro(text))
    for candidate in standalone_candidates(text, seen) if seen is not None else ():
        observed = probe.observe(Repro(candidate))
        if ended_badly(observed.compiled) and not ended_badly(observed.eager):
            with plain_runs_side_by_side(probe.environment, candidate, (True, False), timeout=120) as runs:
                if [run.failed for run in runs] == [False, True]:
                    return candidate
    return ""
