"""The explain stage: the conditions without which the shrunk script does not show the mismatch."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from torchbisect.core.verdict import Verdict
from torchbisect.minimizer.explain.conditions import MeasuredCondition, find_conditions
from torchbisect.pipeline.session import Session
from torchbisect.probe.oracle import Oracle, Question


def explain_mismatch(session: Session, oracle: Oracle, question: Question) -> Sequence[MeasuredCondition]:
    """Ask about the neighbors of the shrunk script, and return what the answers say about its conditions."""

    numbers = itertools.count(1)

    def ask(source: str) -> Verdict:
        session.display.status(f"asking the shrunk script's neighbors, {next(numbers)} so far")
        return oracle.ask(question.with_source(source))

    found = find_conditions(question.repro.source, ask)
    for condition in found:
        if condition.necessary:
            counted = f"{condition.shown} of {condition.tried} variants without it failed"
            session.display.result(f"{condition.description}: {counted}")
    return found
