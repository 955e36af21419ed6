"""Pay in the agent, once, for what every child would otherwise pay for itself.

Imports alone are not enough: the first compile of a process fills a hundred caches. So the agent compiles one small
function for good. Two things it must not do: run an operator on more than one thread (a child forked after that hangs
in its first parallel operator), and run backward (since 2.10, builds with CUDA refuse autograd in a child whose parent
ran it).
"""

from __future__ import annotations

import contextlib
import io
from typing import Any, Set

import torch
import torch._dynamo

LADDER = ("eager", "aot_eager", "inductor")


def _small(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x * y).sin() + y


def _unmeasured(*_: Any) -> float:
    return 0.0


def _backward_stays_here() -> bool:
    """Whether tracing a backward in this process would keep its children from running one."""
    numbers = torch.__version__.split(".")[:2]
    return torch.version.cuda is not None and [int(number) for number in numbers] >= [2, 10]


class Warmth:
    """Which parts of the compile stack this process has been through."""

    def __init__(self) -> None:
        self._reached: Set[str] = set()
        # Dynamo times the guards of every compile, for a log, after flushing the processor's caches: 50 ms a compile.
        guards = getattr(torch._dynamo, "guards", None)
        if hasattr(guards, "profile_guard_manager"):
            guards.profile_guard_manager = _unmeasured  # type: ignore[union-attr]

        # In 2.0 no variable is read: inductor, once imported, has a pool of processes, and a child that was forked
        # beside it waits for answers that never come.
        with contextlib.suppress(ImportError):
            import torch._inductor.config as inductor

            inductor.compile_threads = 1

    def upto(self, backend: str) -> bool:
        """Compile something with every backend up to this one, and at least ``aot_eager``.

        Failures are the children's to report. Returns whether there was anything left to do.
        """
        last = max(1, LADDER.index(backend)) if backend in LADDER else 1
        missing = [name for name in LADDER[: last + 1] if name not in self._reached]
        for name in missing:
            self._reached.add(name)
            with contextlib.suppress(Exception), contextlib.redirect_stderr(io.StringIO()):
                self._compile(name)
            torch._dynamo.reset()
        return bool(missing)

    def _compile(self, backend: str) -> None:
        torch._dynamo.reset()
        x = torch.ones(4, requires_grad=backend != "inductor" and not _backward_stays_here())
        # Symbolic sizes bring in a computer algebra system, which is slow to wake.
        torch.compile(_small, backend=backend, dynamic=backend == "aot_eager")(x, torch.ones(4))
