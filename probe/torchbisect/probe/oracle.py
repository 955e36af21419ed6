"""A question (does this script show this mismatch here?), and the interface of whatever answers it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Protocol

from torchbisect.containers.environment import Environment
from torchbisect.core.repro import Repro, Settings
from torchbisect.core.trace import Trace
from torchbisect.core.verdict import Verdict
from torchbisect.probe.agent_client import ToolAnswer
from torchbisect.probe.judge.classify import Mismatch
from torchbisect.probe.judge.environment_faults import Untestable
from torchbisect.probe.judge.matching import Strictness
from torchbisect.probe.judge.observation import Observation
from torchbisect.probe.judge.signature import Signature
from torchbisect.probe.limits import Limits


@dataclass(frozen=True)
class Question:
    """A question about an environment.

    Attributes:
        signature: the mismatch that counts.
        settings: the settings of ``torch.compile``; the script's own choices if left out.
        strictness: how much of the signature must match. ``STRICT`` while a script is shrunk on one build;
            ``TOLERANT`` across builds, whose internals are refactored between them.
        eager_must_succeed: a script that fails without ``torch.compile`` is no evidence, and is not run compiled.
        limits: tighter limits than those of the oracle, for candidates: one that takes far longer than the script that
            it is made from is no smaller form of it. Not part of a question's identity.
    """

    repro: Repro
    signature: Signature
    settings: Settings = field(default_factory=Settings)
    strictness: Strictness = Strictness.STRICT
    eager_must_succeed: bool = False
    limits: Limits | None = None

    def with_source(self, source: str) -> Question:
        """Return the same question about another text of the script."""
        return replace(self, repro=self.repro.with_source(source))

    @property
    def runs_as_observed(self) -> bool:
        """True if the script runs for this question as ``Oracle.observe`` runs it."""
        return not self.eager_must_succeed and self.limits is None


class Oracle(Protocol):
    """Answers questions about scripts on one environment.

    ``probe.Probe`` runs a script twice and compares the runs; ``test_command.CommandProbe`` runs a test of the
    user's own. An oracle is used from one thread at a time.
    """

    def __enter__(self) -> Oracle: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, frames: TracebackType | None
    ) -> None: ...

    @property
    def environment(self) -> Environment:
        """The environment that is asked about."""

    @property
    def limits(self) -> Limits:
        """The limits of every run of a script."""

    @property
    def repeat(self) -> int:
        """The number of runs behind each answer."""

    @property
    def compares_eager(self) -> bool:
        """True if a script runs both without and with ``torch.compile``, so that the settings can change the answer."""

    @property
    def runs_are_cheap(self) -> bool:
        """True if one more run costs about a second, so that an answer may be checked by further runs."""

    @property
    def subject(self) -> str:
        """A phrase for the user that names what is run."""

    @property
    def pass_summary(self) -> str:
        """A phrase for the user that says what was seen where nothing is wrong."""

    @property
    def activity(self) -> str:
        """A phrase for the user about the run in progress, read from any thread: ``compiling for 60 s``; or empty."""

    def clone(self) -> Oracle:
        """Return an oracle of the same kind with the same journal, for another thread; the caller closes it."""

    def take_over(self, clone: Oracle) -> None:
        """Keep the process of a clone that will be closed, for the next clone."""

    def start(self, expected: Question | None = None) -> None:
        """Start what the next question needs, and for an expected one what its answer depends on.

        Raises ``TorchbisectError`` if that fails.
        """

    def close(self) -> None:
        """End all processes; the next question starts them again."""

    def observe(self, repro: Repro, settings: Settings | None = None) -> Observation:
        """Return the two runs of a script; the eager one is ``not-run`` for a test. Raises ``DiskFull``."""

    def mismatch(self, repro: Repro, settings: Settings | None = None) -> Mismatch | None:
        """Return the mismatch of a script; ``None`` if there is none, or if the script is untestable."""

    def untestable(self, repro: Repro, settings: Settings | None = None) -> Untestable | None:
        """Return the reason why a script is no evidence here, or ``None`` if it is."""

    def succeeds_in_eager(self, repro: Repro) -> bool:
        """Return True if a script is known to end well without ``torch.compile``."""

    def ask(self, question: Question) -> Verdict:
        """Answer a question, from the journal if it was asked before."""

    def ask_in_fresh_process(self, question: Question) -> Verdict:
        """Answer a question in a new process, never from the journal."""

    def mismatch_in_fresh_process(self, repro: Repro, settings: Settings | None = None) -> Mismatch | None:
        """Return the mismatch of a script as a new process shows it, never from the journal."""

    def mismatch_in_plain_process(self, repro: Repro) -> Mismatch | None:
        """Return the mismatch that a script shows under plain Python although its forked runs agree.

        From then on every question gets plain Python. ``None`` if plain Python shows none either, or the script fails
        there without ``torch.compile`` too, or fails in one run only and in no further one.
        """

    def ask_once(self, question: Question) -> Verdict:
        """Answer a question by one more run, never from the journal."""

    def fresh_process_agrees(self, question: Question) -> bool:
        """Check that a fresh process gives the cached answer. After the first difference, stop using warm processes."""

    def ask_again(self, question: Question, number: int) -> Verdict:
        """Answer a question by its further run of this number, from 1 on; from the journal if that was made before."""

    def prepare_fresh_process(self, repro: Repro) -> None:
        """Start a fresh process in the background, for a question about a script that will need one soon."""

    def use_prepared_process(self) -> None:
        """Answer the next questions with the process that was prepared, if that saves time.

        The one that answered so far is prepared in its place: neither of the two has run a script itself.
        """

    def trace(self, repro: Repro) -> Trace:
        """Return what an eager run of a script did."""

    def run_tool(self, name: str, repro: Repro) -> ToolAnswer:
        """Return the answer of one of torch's own tools about a script; empty if there is none.

        ``find-pass`` asks ``CompilerBisector`` about a script that fails by itself; ``collect-env`` describes the
        machine (``agent/run/tools.py``).
        """


def times_shown(oracle: Oracle, question: Question, times: int) -> int:
    """Return how many of so many further runs show the mismatch; they are made one after the other."""
    return sum(oracle.ask_again(question, number).same for number in range(1, times + 1))
