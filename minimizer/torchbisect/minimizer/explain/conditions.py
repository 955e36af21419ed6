"""Measure what a mismatch needs, by asking about the neighbors of the shrunk script.

First come the neighbors that differ in one property. Then hypothesis draws neighbors that differ in several: a property
is called necessary only if the mismatch is absent from every neighbor in which it differs. Only answers that are
evidence count, and every condition comes with its counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from torchbisect.core.verdict import Answer, Verdict
from torchbisect.minimizer.explain.neighbors import FLOAT_DTYPES, Property, changed, properties

MAX_QUESTIONS = 120
MAX_SECONDS = 120.0
"""Limit on the run time of the questions themselves, so that a resumed run asks the same questions."""
MAX_COMBINATIONS = 16


@dataclass(frozen=True)
class MeasuredCondition:
    """The measurements of one property, described in words that hold for all runs.

    Of the ``tried`` scripts with the property different, ``shown`` still showed the mismatch. ``necessary`` means that
    none of the runs with the property different did.
    """

    description: str
    necessary: bool
    tried: int
    shown: int


def find_conditions(source: str, ask: Callable[[str], Verdict]) -> tuple[MeasuredCondition, ...]:
    """Return the conditions of a mismatch, as far as neighbors of the shrunk script show them."""
    survey = _Survey(source, ask, properties(source))
    survey.ask_one_by_one()
    survey.ask_combinations()
    return tuple(filter(None, (_condition(survey, number) for number in range(len(survey.properties)))))


@dataclass
class _Survey:
    """The answers so far by the changes of a neighbor: pairs of a property's number and the variant."""

    source: str
    ask: Callable[[str], Verdict]
    properties: Sequence[Property]
    shown: dict[tuple[tuple[int, str], ...], bool] = field(default_factory=dict)
    asked: int = 0
    seconds: float = 0.0

    def ask_one_by_one(self) -> None:
        """Ask about each neighbor that differs in one property."""
        for number, one in enumerate(self.properties):
            for variant in one.variants:
                self.look({number: variant})

    def ask_combinations(self) -> None:
        """Ask about neighbors that differ in several properties, made of single changes that are known to run."""
        known = sorted(changes[0] for changes in self.shown)
        if len({number for number, _ in known}) < 2:
            return
        # Imported late: only --explain draws.
        from hypothesis import HealthCheck, Phase, given, settings
        from hypothesis import strategies as st

        # Hypothesis derives its seed from the source of `draw`: to edit that function is to ask other questions.
        @settings(
            max_examples=MAX_COMBINATIONS,
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
        """Ask about the neighbor with these changes: from a property's number to the variant."""
        key = tuple(sorted(changes.items()))
        if key in self.shown or self.asked >= MAX_QUESTIONS or self.seconds >= MAX_SECONDS:
            return
        verdict = self.ask(changed(self.source, [self.properties[n].variants[variant] for n, variant in key]))
        self.asked, self.seconds = self.asked + 1, self.seconds + verdict.seconds
        if verdict.answer in (Answer.SAME, Answer.NONE):
            self.shown[key] = verdict.same

    def single_changes(self, number: int) -> dict[str, bool]:
        """Return whether each variant of one property, changed alone, showed the mismatch."""
        return {key[0][1]: shown for key, shown in self.shown.items() if len(key) == 1 and key[0][0] == number}

    def with_any_variant(self, number: int, variants: Sequence[str]) -> list[bool]:
        """Return the answers for all neighbors in which one property is one of these variants."""
        wanted = {(number, variant) for variant in variants}
        return [shown for key, shown in self.shown.items() if wanted & set(key)]


def _condition(survey: _Survey, number: int) -> MeasuredCondition | None:
    """Return the condition that the answers give for one property; ``None`` if there is no evidence."""
    one, single = survey.properties[number], survey.single_changes(number)
    failing = [variant for variant, shown in single.items() if shown]
    passing = [variant for variant, shown in single.items() if not shown]
    if not single:
        return None
    if not passing:
        description = f"{one.description} does not matter: {one.current}, and also {', '.join(failing)}"
        return MeasuredCondition(description, False, len(failing), len(failing))
    different = survey.with_any_variant(number, passing)
    necessary = not any(different)
    return MeasuredCondition(_need(one, failing, passing, necessary), necessary, len(different), sum(different))


def _need(one: Property, failing: Sequence[str], passing: Sequence[str], necessary: bool) -> str:
    """Describe the need for a property; without it some scripts still fail if it is not ``necessary``."""
    verb = "needs" if necessary else "usually needs"
    if one.kind == "requires_grad":
        return f"{one.description.removeprefix('requires_grad of ')} {verb} requires_grad={one.current}"
    return f"{one.description} {verb} to be {_required_values(one, failing, passing)}"


def _required_values(one: Property, failing: Sequence[str], passing: Sequence[str]) -> str:
    """Describe the values with which the mismatch appears, in terms of the variants that were tried."""
    if one.kind == "size":
        shows, agrees = sorted(map(int, (one.current, *failing))), sorted(map(int, passing))
        if agrees[-1] < shows[0]:
            return f"at least {shows[0]} (not {', '.join(map(str, agrees))})"
        if agrees[0] > shows[-1]:
            return f"at most {shows[-1]} (not {', '.join(map(str, agrees))})"
    current = "float32" if one.current == "the default" else one.current
    if one.kind == "dtype" and set(FLOAT_DTYPES) <= {current, *failing} and not set(FLOAT_DTYPES) & set(passing):
        more = [dtype for dtype in failing if dtype not in FLOAT_DTYPES]
        return " or ".join(("any float dtype", *more)) + f" (not {', '.join(passing)})"
    return " or ".join((one.current, *failing)) + f" (not {', '.join(passing)})"
