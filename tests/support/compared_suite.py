"""A test suite as a user has it: bugs of torch 2.13 in some tests, and tests that only look as if they had one."""

from __future__ import annotations

#: Each test whose name begins with ``test_bug`` meets a bug of torch 2.13.
SUITE = """
import collections
import pytest
import torch

SCALE = 3.0

def scaled(x, recent):
    return x * len(recent) * SCALE

@torch.compile(backend="eager")
def count(x):
    recent = collections.deque([1, 2, 3], maxlen=0)
    recent.append(4)
    return scaled(x, recent)

@pytest.fixture
def numbers():
    return torch.arange(1.0, 11.0)

class Net(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.inner = torch.nn.Linear(width, width)

    def forward(self, x):
        recent = collections.deque([1, 2, 3], maxlen=0)
        recent.append(4)
        return self.inner(x) * len(recent)

def test_bug_values():
    count(torch.ones(2))

def test_bug_mutation(numbers):
    def scale(buffer):
        windows = buffer.unfold(0, 2, 4)
        windows.mul_(10)
        return buffer.sum()
    torch.compile(scale, backend="aot_eager")(numbers)

def test_bug_module():
    torch.compile(Net(16), backend="eager")(torch.randn(2, 16))

def test_bug_side_effect():
    seen = []
    class Log:
        def hit(self, value):
            seen.append(value)
    def step(x):
        Log().hit("called")
        return x * 2
    torch.compile(step, backend="eager")(torch.ones(2))

def test_bug_exception():
    @torch.compile(backend="eager")
    def rows(x):
        try:
            return x.view(3, 4)
        except RuntimeError:
            return x.reshape(-1)
    rows(torch.arange(8.0))

def test_gradients():
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    torch.compile(net, backend="aot_eager")(torch.randn(2, 4)).sum().backward()
    assert net[0].weight.grad is not None

def test_random_numbers():
    torch.compile(lambda x: torch.nn.functional.dropout(x) + torch.randn_like(x), backend="aot_eager")(torch.ones(8))

def test_counts_graphs():
    from torch._dynamo.testing import CompileCounter
    counter = CompileCounter()
    torch.compile(lambda x: x + 1, backend=counter)(torch.ones(2))
    assert counter.frame_count == 1

graphs = []

def test_keeps_and_prints_graphs(capfd):
    def backend(gm, inputs):
        graphs.append(gm)
        print("a graph")
        return gm.forward
    torch.compile(lambda x: x + 1, backend=backend)(torch.ones(2))
    assert capfd.readouterr().out.count("a graph") == 1

def test_writes_a_file(tmp_path):
    (tmp_path / "made").mkdir()
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))

def test_raises_in_both():
    with pytest.raises(RuntimeError):
        torch.compile(lambda x: x.view(3, 4), backend="eager")(torch.ones(8))

calls = []

def test_no_state_of_its_own():
    calls.append(1)
    torch.compile(lambda x: x + len(calls), backend="eager")(torch.ones(2))

def test_compiles_nothing():
    assert torch.ones(1) == 1

@pytest.mark.xfail(strict=True)
def test_known_to_fail():
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    raise ValueError
"""
