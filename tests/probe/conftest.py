"""Builders of what a pair of runs shows, in the form that the agent gives it; and a probe of the torch that is here."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from torchbisect.containers.environment import Environment
from torchbisect.core.verdict import MismatchKind
from torchbisect.probe.journal import Journal
from torchbisect.probe.judge.observation import Difference, Ending, Frame, Observation, Raised
from torchbisect.probe.probe import Probe


class Shown:
    """Writes observations as the agent would."""

    finished = Ending("finished", compiled=1)

    def frame(self, text: str) -> Frame:
        """``torch/_dynamo/utils.py:run_node`` or ``repro.py:f:7``; the script's own end with their line."""
        file, function, *line = text.split(":")
        number = int(line[0]) if line else 1
        return Frame(file, function, number, "torch" if file.startswith("torch/") else "user")

    def raised(
        self, name: str, message: str = "", *frames: str, bases: tuple[str, ...] = (), cause: Raised | None = None
    ) -> Raised:
        """An exception with its frames, outermost first."""
        given = bases or ("Exception", "BaseException")
        return Raised(name, given, message, tuple(self.frame(text) for text in frames), cause)

    def ends(self, raised: Raised) -> Ending:
        """A run that an exception ended."""
        return Ending("raised", raised=raised, compiled=1)

    def exits(self, status: int, output: str = "") -> Ending:
        """A run that exited."""
        return Ending("exited", status=status, output=output, compiled=1)

    def differs(self, kind: MismatchKind, place: str, attribute: str, eager: str, compiled: str) -> Difference:
        """Something that differs."""
        return Difference(kind, place, attribute, eager, compiled)

    def both(self, eager: Ending, compiled: Ending, *differences: Difference) -> Observation:
        """The two runs."""
        return Observation(eager, compiled, differences)

    def compiled(self, ending: Ending, *differences: Difference) -> Observation:
        """A compiled run beside an eager one that finished."""
        return Observation(Ending("finished"), ending, differences)


@pytest.fixture(scope="session")
def shown() -> Shown:
    return Shown()


@pytest.fixture(scope="session")
def lost_grad(shown: Shown) -> Callable[..., Difference]:
    """The difference that most tests are about."""

    def make(place: str = "call 0 output", eager: str = "True", compiled: str = "False") -> Difference:
        return shown.differs(MismatchKind.METADATA, place, "requires_grad", eager, compiled)

    return make


@pytest.fixture(scope="session")
def environment(torch_of: Callable[[str], Environment]) -> Environment:
    """The torch beside torchbisect."""
    return torch_of("installed")


@pytest.fixture(scope="session")
def probe(environment: Environment) -> Iterator[Probe]:
    """One agent for all tests that need no settings of their own: starting one is most of what a test takes."""
    with Probe(environment, Journal()) as probe:
        yield probe
