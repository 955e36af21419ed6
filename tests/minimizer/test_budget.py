"""A reduction that no longer pays ends, and its result is still made readable."""

from __future__ import annotations

import pytest

from torchbisect.core.verdict import Answer, Verdict
from torchbisect.minimizer.budget import Patience
from torchbisect.minimizer.minimize import minimize


@pytest.mark.parametrize(
    ("asked", "sizes", "ended"),
    [
        (149, [(0, 1000)], False),
        (150, [(0, 1000), (10, 90)], True),
        (150, [(0, 1000)], False),
        (300, [(0, 1000)], True),
        (150, [(0, 1000), (100, 90), (140, 80)], False),
        (150, [(0, 1000), (100, 90), (119, 82), (140, 80)], True),
        (199, [(0, 4000)], False),
        (300, [(0, 4000), (10, 90)], True),
        (150, [], False),
    ],
)
def test_patience_ends_when_the_last_questions_removed_next_to_nothing(
    asked: int, sizes: list[tuple[int, int]], ended: bool
) -> None:
    assert Patience().has_ended(asked, sizes) is ended


def test_the_result_of_a_reduction_that_ended_early_is_readable() -> None:
    # Every other word is needed, so questions fail, and only the patience ends the reduction.
    words = [f"word{number}" for number in range(40)]
    program = "import torch\nlong_name = torch.compile\n" + "\n".join(f"long_name('{word}')" for word in words)

    def ask(text: str) -> Verdict:
        return Verdict(Answer.SAME if all(word in text for word in words[::2]) else Answer.NONE)

    complete = minimize(program, ask)
    assert complete.paid_off
    early = minimize(program, ask, patience=Patience(questions=10, window=5, share=0.5, readable=1000))
    assert (early.finished, early.paid_off) == (True, False)
    assert 10 <= early.asked < complete.asked
    assert "long_name" not in early.source
