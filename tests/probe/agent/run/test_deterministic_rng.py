"""With the deterministic generator each draw gives the same numbers, whatever was drawn before."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.torch


def test_draws_do_not_depend_on_their_order() -> None:
    program = """
import torch
from torchbisect.probe.agent.run.eager_modes import DeterministicRandom
def draws(order):
    kinds = [lambda: torch.rand(4), lambda: torch.randn(2, 2), lambda: torch.randint(3, 9, (5,)),
             lambda: torch.nn.functional.dropout(torch.ones(6)), lambda: torch.empty(3).exponential_()]
    made = {number: kinds[number]().tolist() for number in order}
    return [made[number] for number in sorted(made)]
with DeterministicRandom():
    assert draws([0, 1, 2, 3, 4]) == draws([4, 2, 0, 1, 3])
    numbers = torch.rand(1000)
    assert 0.4 < numbers.mean() < 0.6 and numbers.min() > 0 and numbers.max() < 1
    assert abs(torch.randn(1000).std() - 1) < 0.1
    assert set(torch.randint(3, 6, (200,)).tolist()) == {3, 4, 5}
"""
    subprocess.run([sys.executable, "-c", program], check=True)
