"""Arguments of one storage are written as views of one tensor."""

from __future__ import annotations

import pytest

from torchbisect.core.repro import Repro
from torchbisect.probe.probe import Probe

pytestmark = pytest.mark.torch

SCRIPT = """\
import torch
def step(line, tap, other, table, column):
    line.add_(1)
    return tap[0] + other + column.sum()
line, table = torch.zeros(4), torch.zeros(2, 3)
step(line, line[1:], torch.ones(1), table.t()[0], table)
"""


def test_arguments_of_one_storage_are_views_of_one_tensor(probe: Probe) -> None:
    (call,) = probe.trace(Repro(SCRIPT)).calls
    assert [argument.text for argument in call.arguments] == [
        "(shared0 := torch.zeros(4))",
        "shared0[1:]",
        "torch.ones(1)",
        "(shared1 := torch.zeros(2, 3)).as_strided((2,), (3,), 0)",
        "shared1",
    ]


def test_a_list_that_is_given_twice_is_one_list(probe: Probe) -> None:
    script = "def add(x, to, seen, table):\n    to.append(x)\nkept, table = [1], {}\nadd(2, kept, kept, table)\n"
    (call,) = probe.trace(Repro(script)).calls
    assert [argument.text for argument in call.arguments] == ["2", "(shared0 := [1])", "shared0", "{}"]
