"""Who answers the one question about an environment: a probe that runs scripts both ways, or the user's own test."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol

from torchbisect.containers.environment import Environment
from torchbisect.core.repro import Repro, Settings
from torchbisect.core.trace import Trace
from torchbisect.core.verdict import Verdict
from torchbisect.probe.agent_client import Limits
from torchbisect.probe.judge.classify import Mismatch
from torchbisect.probe.judge.environment_faults import Fault
from torchbisect.probe.question import Question


class Oracle(Protocol):
    """Answers questions about scripts on one environment; used from one thread at a time."""

    def __enter__(self) -> Oracle: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, frames: TracebackType | None
    ) -> None: ...

    def beside(self) -> Oracle:
        """Another one of the same kind, with the same memory, for another thread; whoever asks for it closes it."""

    def start(self) -> None:
        """Make warm what the next question needs. Raises ``TorchbisectError`` where that can't be."""

    def close(self) -> None:
        """End what is warm; the next question starts it again."""

    @property
    def environment(self) -> Environment:
        """What is asked about."""

    @property
    def limits(self) -> Limits:
        """Of every run of a script."""

    @property
    def repeat(self) -> int:
        """How often each question is asked."""

    def mismatch(self, repro: Repro, settings: Settings | None = None) -> Mismatch | None:
        """What a script shows; ``None`` if nothing, or if ``trouble`` has something to say."""

    def trouble(self, repro: Repro, settings: Settings | None = None) -> Fault | None:
        """Why a script is no evidence here, or ``None`` if it is."""

    def finishes(self, repro: Repro, settings: Settings | None = None) -> bool:
        """Whether a script comes to its end without ``torch.compile``, as far as this oracle looks at that."""

    def ask(self, question: Question) -> Verdict:
        """Whether a script still shows a mismatch; from the journal if it was asked before."""

    def confirm(self, question: Question) -> Verdict:
        """The same, asked anew and from nothing that is warm."""

    def ask_once(self, question: Question) -> Verdict:
        """What one more run of a script shows, never from the journal."""

    def agrees(self, question: Question) -> bool:
        """Whether a question asked anew gets the answer that it had; from a difference on nothing warm is trusted."""

    def flakiness(self, question: Question, times: int) -> float:
        """The share of a number of runs that show a mismatch: 1.0 for one that is always there."""

    def trace(self, repro: Repro) -> Trace:
        """What an eager run of a script did."""
