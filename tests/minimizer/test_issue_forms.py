"""Scripts in the form in which issues have them: what nothing needs goes, whatever form it has."""

from __future__ import annotations

import pytest

from torchbisect.core.repro import Repro
from torchbisect.minimizer.minimize import Budget, minimize
from torchbisect.probe.oracle import Question
from torchbisect.probe.probe import Probe

pytestmark = [pytest.mark.torch, pytest.mark.long]

# Compiled keeps what a deque of no length is given: true of torch up to 2.14.
# Each with what may not be left, and the most lines of the result.
SCRIPTS = {
    "an f-string that nothing reads (pytorch#161610)": (
        """
import collections
import torch

def f(x):
    kept = collections.deque([1.0], maxlen=0)
    kept.append(2.0)
    name = f"kept {len(kept)} of {x.shape}"
    f"{name}: {x.dtype}"
    return x + len(kept)

x = torch.ones(3)
f"eager: {f(x)}"
compiled = torch.compile(f, backend="eager")
message = f"compiled with {torch.__version__}"
f"{message}: {compiled(x)}"
""",
        ('f"', "f'", "message", "name"),
        8,
    ),
    "globals that a function reads": (
        """
import collections
import torch

y = torch.ones(8)
z = torch.bfloat16
limit = 0

def f(x):
    kept = collections.deque([1.0], maxlen=limit)
    kept.append(2.0)
    return x.to(z) * y.to(z) * len(kept)

torch.compile(f, backend="eager")(torch.ones(8))
""",
        ("bfloat16", "limit", ".to("),
        8,
    ),
    "numbers that are drawn without a seed, and of which the mismatch needs one below zero": (
        """
import torch

layer = torch.nn.ReLU()
step = torch.compile(lambda x: layer(x), backend="eager")
step(torch.randn(4, 8))
layer.register_forward_hook(lambda module, inputs, output: inputs[0].abs())
for _ in range(3):
    batch = torch.randn(4, 8)
    print((step(batch) - torch.relu(batch)).abs().sum())
""",
        ("rand", "seed", "range"),
        8,
    ),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_nothing_is_left_that_the_mismatch_does_not_need(name: str, probe: Probe) -> None:
    source, gone, lines = SCRIPTS[name]
    mismatch = probe.mismatch(Repro(source))
    if mismatch is None:
        pytest.skip("the installed torch has this bug no more")
    result = minimize(
        source,
        lambda text: probe.ask(Question(Repro(text), mismatch.signature)),
        trace=lambda text: probe.trace(Repro(text)),
        budget=Budget(questions=150),
    )
    assert result.finished
    assert not [word for word in gone if word in result.source], result.source
    assert result.lines <= lines, result.source
