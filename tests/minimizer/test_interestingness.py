"""Repeated runs of accepted candidates: a neighbor fails now and then, beside a bug that always shows."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from torchbisect.core.verdict import Answer, Verdict
from torchbisect.minimizer.interestingness import require_every_run
from torchbisect.minimizer.minimize import minimize

PROGRAM = "import torch\n" + "".join(f"v{n} = torch.ones({n + 1})\n" for n in range(12)) + "print(v3 + v7)\n"


@given(st.integers(0, 10**6))
def test_a_candidate_that_shows_the_mismatch_by_chance_is_rejected(seed: int) -> None:
    dice = random.Random(seed)

    def ask(source: str) -> Verdict:
        always = "torch.ones(4)" in source and "torch.ones(8)" in source
        return Verdict(Answer.SAME if always or dice.random() < 0.3 else Answer.NONE)

    found = minimize(PROGRAM, require_every_run(ask, ask, 12)).source
    assert "torch.ones(4)" in found
    assert "torch.ones(8)" in found


@given(st.lists(st.sampled_from(list(Answer)), min_size=1, max_size=6), st.integers(0, 5))
def test_a_candidate_is_accepted_only_if_every_run_shows_the_mismatch(answers: list[Answer], times: int) -> None:
    left = iter(answers)
    asked: list[str] = []

    def one(source: str) -> Verdict:
        asked.append(source)
        return Verdict(next(left, Answer.SAME))

    said = require_every_run(one, one, times)("x")
    runs = [*answers, *[Answer.SAME] * 6][: times + 1]
    assert said.same == all(answer is Answer.SAME for answer in runs)
    assert said.answer is (answers[0] if answers[0] is not Answer.SAME else said.answer)
    assert len(asked) <= times + 1
