"""A trace has the attributes that statements read, where each had one value that can be written."""

from __future__ import annotations

import pytest

from torchbisect.core.repro import Repro
from torchbisect.probe.probe import Probe

pytestmark = pytest.mark.torch

SCRIPT = """\
import collections, operator
from dataclasses import dataclass
from typing import NamedTuple
import torch

class Size(NamedTuple):
    rows: int

@dataclass
class Step:
    function: object
    names: tuple

class Plan:
    width = 4

    def __init__(self):
        self.steps = [Step(operator.isub, ('a',))]
        self.count = 0

    @property
    def costly(self):
        raise RuntimeError("nobody may call this")

plan, size = Plan(), Size(3)
for step in plan.steps * 2:
    plan.count = plan.count + 1
    step.function({1}, set(step.names))
    if size.rows > plan.width and plan.costly:
        pass
NAMES, COUNTS = ["a"], collections.defaultdict(list, {0: [1]})
def total(names):
    return len(NAMES) + len(names) + len(COUNTS)
total([1])
print(torch.ones(size.rows).sum(), [plan.width for _ in range(2)])
"""


def test_reads_have_their_one_value_and_no_code_is_run_for_them(probe: Probe) -> None:
    found = {(value.line, value.name): value.text for value in probe.trace(Repro(SCRIPT)).reads}
    assert found == {
        (30, "plan.steps"): "[Step(function=operator.isub, names=('a',))]",
        (28, "step.function"): "operator.isub",
        (28, "step.names"): "('a',)",
        (30, "size.rows"): "3",
        (30, "plan.width"): "4",
        (33, "NAMES"): "['a']",
        (33, "COUNTS"): "collections.defaultdict(list, {0: [1]})",
        (35, "size.rows"): "3",
        (35, "plan.width"): "4",
    }
