"""Large scripts, and probes of the torch that they fail on, for the benchmarks of the minimizer."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from torchbisect.containers.index.indexes import Indexes
from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.containers.store.cache import Cache
from torchbisect.containers.venv.environments import VenvEnvironments
from torchbisect.core.build import Build, Channel
from torchbisect.core.repro import Repro, Settings
from torchbisect.minimizer.syntax.backend import with_backend
from torchbisect.probe.journal import Journal
from torchbisect.probe.judge.environment_faults import ended_badly
from torchbisect.probe.judge.signature import Signature
from torchbisect.probe.limits import Limits
from torchbisect.probe.oracle import Question
from torchbisect.probe.probe import Probe

LARGE = Path(__file__).resolve().parent / "large"
BACKENDS = ("eager", "aot_eager", "aot_eager_decomp_partition", "inductor")
"""Backends by their cost, the cheapest first."""


@dataclass(frozen=True)
class Case:
    """A large script, and the script that a person reduced it to."""

    name: str
    large: str
    minimal: str


@dataclass(frozen=True)
class StartingPoint:
    """The script that a reduction of a case begins with.

    Attributes:
        probe: the first probe whose torch shows the mismatch.
        source: the script on the cheapest backend that shows the mismatch.
        signature: the mismatch.
        finishes: whether the script comes to its end without ``torch.compile``.
        limits: the limits of candidates.
    """

    probe: Probe
    source: str
    signature: Signature
    finishes: bool
    limits: Limits

    def question(self, text: str) -> Question:
        """Return the question about a candidate."""
        finishes, limits = self.finishes, self.limits
        return Question(Repro(text), self.signature, eager_must_succeed=finishes, limits=limits)


def cases(folders: list[Path]) -> Iterator[Case]:
    """Find every large script that has a minimal one beside it."""
    for folder in folders:
        for small in sorted(folder.glob("*.minimal.py")):
            name = small.name.removesuffix(".minimal.py")
            yield Case(name, (folder / f"{name}.py").read_text(), small.read_text())
        for small in sorted(folder.glob("*/minimal.py")):
            yield Case(small.parent.name, (small.parent / "large.py").read_text(), small.read_text())


def starting_point(probes: list[Probe], case: Case) -> StartingPoint | None:
    """Return where a reduction of a case begins; ``None`` if no probe shows its mismatch."""
    for probe in probes:
        mismatch = probe.mismatch(Repro(case.large))
        if mismatch is not None:
            source = _on_cheapest_backend(probe, case.large, mismatch.signature)
            seen = probe.observe(Repro(source))
            limits = probe.limits.for_smaller_forms(seen.eager.seconds, seen.compiled.seconds)
            return StartingPoint(probe, source, mismatch.signature, not ended_badly(seen.eager), limits)
    return None


def _on_cheapest_backend(probe: Probe, script: str, signature: Signature) -> str:
    for backend in BACKENDS:
        source = with_backend(script, backend)
        if source is not None and probe.ask(Question(Repro(source), signature, Settings())).same:
            return source
    return script


@contextmanager
def probe_of(cache: Path, python: str, journal: Journal) -> Iterator[Probe]:
    """Open a probe of the torch that a Python has."""
    interpreter = Interpreter.of(python)
    build = Build(str(interpreter.installed_torch), Channel.INSTALLED)
    venvs = VenvEnvironments(Cache(cache), interpreter, Indexes.from_configuration())
    try:
        with Probe(venvs.environment(build), journal) as probe:
            yield probe
    finally:
        venvs.close()


def count_nodes(text: str) -> int:
    """Return the number of nodes of a script's syntax tree."""
    return sum(1 for _ in ast.walk(ast.parse(text)))
