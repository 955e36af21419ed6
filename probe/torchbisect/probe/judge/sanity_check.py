"""Sanity check of an environment: a small script, known to be right, must compile and agree with eager there."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable

from torchbisect.core.repro import Repro, Settings
from torchbisect.probe.judge.classify import find_mismatch, find_untestable
from torchbisect.probe.judge.environment_faults import Untestable
from torchbisect.probe.judge.observation import Observation

KNOWN_GOOD_SCRIPT = """\
import torch
def f(x, w):
    return (torch.relu(x @ w) * 2).sum()
x = torch.ones(4, 8, requires_grad=True)
w = torch.full((8, 4), 0.5, requires_grad=True)
torch.compile(f)(x, w).backward()
"""
"""Forward and backward, on values that leave no room for rounding; right on every torch from 2.0 on."""

_KNOWN_BACKENDS = ("eager", "aot_eager", "aot_eager_decomp_partition", "inductor")
_STAGE_BACKENDS = {"dynamo": "eager", "aot": "aot_eager", "inductor": "inductor"}
# The backend in torch.compile(f, backend="eager") and torch._dynamo.optimize("eager"); a variable counts as a name.
_NAMED_BACKEND = re.compile(r"""(?:\bbackend\s*=|\boptimize\()\s*["']?(\w+)""")


class SanityChecks:
    """The results of the sanity check on one environment, one for each backend; threads may share them."""

    def __init__(self) -> None:
        self._results: dict[str, Untestable | None] = {}
        self._lock = threading.Lock()

    def result(self, backend: str, observe: Callable[[Repro, Settings], Observation]) -> Untestable | None:
        """Return why the environment is no evidence on a backend, or ``None``; the script runs there only once."""
        with self._lock:
            if backend not in self._results:
                result = _judged(observe(Repro(KNOWN_GOOD_SCRIPT), Settings(backend=backend)))
                if result is not None and result.transient:
                    return result
                self._results[backend] = result
            return self._results[backend]


def sanity_backend(stage: str, sources: Iterable[str], settings: Settings) -> str:
    """Return the backend that must be sane before an answer is evidence: the least that the answer depends on.

    It is that of the settings, else the first that reaches the stage of an exception, else the most demanding one that
    the sources name. It is ``inductor`` if they name none, and ``eager`` if they name only backends of their own.
    """
    if settings.backend is not None:
        return settings.backend
    if stage:
        return _STAGE_BACKENDS[stage]
    named = {name for source in sources for name in _NAMED_BACKEND.findall(source)}
    known = [backend for backend in _KNOWN_BACKENDS if backend in named]
    if known:
        return known[-1]
    return "eager" if named else "inductor"


def _judged(observation: Observation) -> Untestable | None:
    untestable, mismatch = find_untestable(observation), find_mismatch(observation, KNOWN_GOOD_SCRIPT)
    if untestable is not None:
        seen, transient = untestable.detail, untestable.transient
    elif mismatch is not None:
        seen, transient = mismatch.summary, False
    else:
        return None
    return Untestable("broken-environment", f"this environment can't compile even a simple script: {seen}", transient)
