"""A real bug of the installed torch, hidden in a program, through the real probe."""

from __future__ import annotations

import pytest

from torchbisect.core.python_text import parse_python
from torchbisect.core.repro import Repro
from torchbisect.minimizer.candidate_filter import CandidateFilter
from torchbisect.minimizer.interestingness import InterestingnessTest
from torchbisect.minimizer.minimize import SCHEDULE, Budget, minimize
from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import tidy
from torchbisect.minimizer.syntax.tree import count_nodes
from torchbisect.probe.oracle import Question
from torchbisect.probe.probe import Probe

# Compiled keeps what a deque of no length is given: true of torch up to 2.14.
PROGRAM = '''
import collections
from dataclasses import dataclass
import torch
import torch.nn as nn

@dataclass
class Config:
    width: int = 4
    history: int = 0
    scale: float = 0.5

def unused_helper(x):
    """Nobody calls this."""
    return x.relu()

class Window:
    def __init__(self, length):
        self.length = length
    def total(self, values):
        kept = collections.deque(values, maxlen=self.length)
        kept.append(0.5)
        return len(kept)

class Net(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.lin = nn.Linear(config.width, config.width)
        self.window = Window(config.history)
    def forward(self, x, values):
        h = torch.tanh(self.lin(x)) * self.config.scale
        if len(values) > 100:
            raise ValueError("too many")
        return h + self.window.total(values)

def main():
    config = Config()
    torch.manual_seed(0)
    model = Net(config)
    forward = torch.compile(model, backend="eager")
    for step in range(2):
        out = forward(torch.randn(3, config.width), [1.0, 2.0])
        print(step, float(out.mean()) < 100)

if __name__ == "__main__":
    main()
'''


@pytest.mark.torch
def test_a_program_shrinks_to_what_a_person_would_write(probe: Probe) -> None:
    mismatch = probe.mismatch(Repro(PROGRAM))
    if mismatch is None:
        pytest.skip("the installed torch has this bug no more")
    result = minimize(
        PROGRAM,
        lambda text: probe.ask(Question(Repro(text), mismatch.signature)),
        trace=lambda text: probe.trace(Repro(text)),
        budget=Budget(questions=200),
    )
    assert result.finished
    assert "deque" in result.source
    assert "class" not in result.source
    assert result.lines <= 8
    assert result.nodes == count_nodes(parse_python(result.source)) <= 60
    assert probe.ask_in_fresh_process(Question(Repro(result.source), mismatch.signature)).same


# A hook that is registered after the first compiled call is not called: true of torch from 2.5 on.
HOOKED = """
import torch
torch.manual_seed(0)
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    def forward(self, x):
        return self.body(x)
net = Net()
compiled = torch.compile(net, backend="eager")
x = torch.ones(1, 2)
compiled(x)
hooked = []
for name, part in net.named_modules():
    if name.endswith("1"):
        hooked.append(name)
        part.register_forward_hook(lambda module, given, out: out + len(hooked))
out = compiled(x)
"""


@pytest.mark.torch
@pytest.mark.long
def test_a_loop_over_modules_becomes_the_module_that_matters(probe: Probe) -> None:
    mismatch = probe.mismatch(Repro(HOOKED))
    if mismatch is None:
        pytest.skip("the installed torch has this bug no more")
    tree = tidy(parse_python(HOOKED))
    test = InterestingnessTest(
        lambda text: probe.ask(Question(Repro(text), mismatch.signature)),
        Budget(),
        lambda progress: None,
        filter=CandidateFilter.of(tree),
    )
    search = ReductionSearch(tree, test, trace=probe.trace(Repro(HOOKED)))
    SCHEDULE.passes["replace_by_value.iterations"](search)
    assert "net.body[1].register_forward_hook" in search.text
    assert "named_modules" not in search.text
