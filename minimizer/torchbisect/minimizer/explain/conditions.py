"""What a mismatch needs: the neighbours of a shrunk script are asked about, and what was measured is put into words.

First each neighbour that differs in one thing, then some that hypothesis draws and that differ in several: what is said
to be necessary has to be so in every one of them. Only answers that are evidence count, and every statement comes with
its counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from torchbisect.core.verdict import Answer, Verdict
from torchbisect.minimizer.explain.neighbors import FLOATS, Dimension, changed, dimensions

MOST_QUESTIONS = 120
SECONDS = 120.0
"""The questions' own seconds, so that a run that goes on asks what the first one would have."""
TOGETHER = 16


@dataclass(frozen=True)
class Statement:
    """What was measured about one thing.

    Attributes:
        words: it, in words that are true of the runs.
        necessary: the mismatch went away in every run in which it was otherwise.
        tried: so many scripts were run in which it was otherwise.
        shown: so many of those still showed the mismatch.
    """

    words: str
    necessary: bool
    tried: int
    shown: int


def explain(source: str, ask: Callable[[str], Verdict]) -> tuple[Statement, ...]:
    """What the mismatch of a script needs, as far as its neighbours tell.

    Args:
        source: the shrunk script.
        ask: whether a script shows the mismatch.
    """
    survey = _Survey(source, ask, dimensions(source))
    survey.one_by_one()
    survey.together()
    return tuple(filter(None, (_statement(survey, number) for number in range(len(survey.dimensions)))))


@dataclass
class _Survey:
    """The neighbours asked so far: which dimensions were changed to what, and whether the mismatch was shown."""

    source: str
    ask: Callable[[str], Verdict]
    dimensions: Sequence[Dimension]
    shown: dict[tuple[tuple[int, str], ...], bool] = field(default_factory=dict)
    asked: int = 0
    seconds: float = 0.0

    def one_by_one(self) -> None:
        for number, dimension in enumerate(self.dimensions):
            for variant in dimension.variants:
                self.look({number: variant})

    def together(self) -> None:
        """Several things at once: only with what is known, from the neighbours before, to run at all."""
        known = sorted(changes[0] for changes in self.shown)
        if len({number for number, _ in known}) < 2:
            return

        @settings(
            max_examples=TOGETHER,
            derandomize=True,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(st.lists(st.sampled_from(known), min_size=2, max_size=4, unique_by=lambda pair: pair[0]))
        def draw(changes: list[tuple[int, str]]) -> None:
            self.look(dict(changes))

        draw()

    def look(self, changes: Mapping[int, str]) -> None:
        key = tuple(sorted(changes.items()))
        if key in self.shown or self.asked >= MOST_QUESTIONS or self.seconds >= SECONDS:
            return
        verdict = self.ask(changed(self.source, [self.dimensions[n].variants[variant] for n, variant in key]))
        self.asked, self.seconds = self.asked + 1, self.seconds + verdict.seconds
        if verdict.answer in (Answer.SAME, Answer.NONE):
            self.shown[key] = verdict.same

    def alone(self, number: int) -> dict[str, bool]:
        """The variants of one dimension that were evidence by themselves, and whether the mismatch was shown."""
        return {key[0][1]: shown for key, shown in self.shown.items() if len(key) == 1 and key[0][0] == number}

    def with_any(self, number: int, variants: Sequence[str]) -> list[bool]:
        """Every neighbour in which one dimension is one of these, whatever else it differs in."""
        wanted = {(number, variant) for variant in variants}
        return [shown for key, shown in self.shown.items() if wanted & set(key)]


def _statement(survey: _Survey, number: int) -> Statement | None:
    dimension, alone = survey.dimensions[number], survey.alone(number)
    failing = [variant for variant, shown in alone.items() if shown]
    passing = [variant for variant, shown in alone.items() if not shown]
    if not alone:
        return None
    if not passing:
        words = f"{dimension.what} does not matter: {dimension.now}, and also {', '.join(failing)}"
        return Statement(words, False, len(failing), len(failing))
    without = survey.with_any(number, passing)
    words = f"{dimension.what} has to be {_boundary(dimension, failing, passing)}"
    return Statement(words, not any(without), len(without), sum(without))


def _boundary(dimension: Dimension, failing: Sequence[str], passing: Sequence[str]) -> str:
    """What it has to be, in the words of what was tried."""
    if dimension.kind == "size":
        shows, agrees = sorted(map(int, (dimension.now, *failing))), sorted(map(int, passing))
        if agrees[-1] < shows[0]:
            return f"at least {shows[0]} (not {', '.join(map(str, agrees))})"
        if agrees[0] > shows[-1]:
            return f"at most {shows[-1]} (not {', '.join(map(str, agrees))})"
    now = "float32" if dimension.now == "the default" else dimension.now
    if dimension.kind == "dtype" and set(FLOATS) <= {now, *failing} and not set(FLOATS) & set(passing):
        more = [one for one in failing if one not in FLOATS]
        return " or ".join(("any float dtype", *more)) + f" (not {', '.join(passing)})"
    return " or ".join((dimension.now, *failing)) + f" (not {', '.join(passing)})"
