"""Programs that contain something which looks like the mismatch: the result must show the mismatch itself.

Each program has a real bug of the installed torch, asked about through the real probe.
"""

from __future__ import annotations

import pytest

from torchbisect.core.python_text import parse_python
from torchbisect.core.repro import Repro
from torchbisect.minimizer.defects import count_defects
from torchbisect.minimizer.minimize import Budget, Reduction, minimize
from torchbisect.probe.oracle import Question
from torchbisect.probe.probe import Probe
from torchbisect.probe.standalone_run import run_plain

# Compiled keeps what a deque of no length is given: true of torch up to 2.14.
_START = """\
import collections
import torch

@torch.compile(backend="eager")
def total(x, length):
    kept = collections.deque(maxlen=length)
    kept.append(0.5)
    return x * 2 + len(kept)

def check(x):
    if total(x, 0)[0] != 2:
        raise RuntimeError("MISMATCH: wrong total")
"""

TRAPS = {
    "another failure with the same class of exception": """
@torch.compile(backend="eager", fullgraph=True)
def neighbour(x):
    torch._dynamo.graph_break()
    return x + 1

def main():
    x = torch.ones(3)
    check(x)
    try:
        neighbour(x)
    except Exception as problem:
        raise RuntimeError("MISMATCH: another one") from problem

if not torch._dynamo.config.disable:
    main()
""",
    "an import error with the same words": """
def load():
    try:
        from collections import wrong_total
    except ImportError:
        raise RuntimeError("MISMATCH: wrong total") from None

names = set(dir(collections)) | {"wrong_total"}
if "wrong_total" not in names:
    load()
check(torch.ones(3))
""",
    "the user's marker, printed and raised where nothing is wrong": """
def report(found, expected):
    print("MISMATCH: wrong total", found, expected)
    if found != expected:
        raise RuntimeError("MISMATCH: wrong total")

x = torch.ones(3)
report(float(x.sum()), 3.0)
report(float((x * 2).sum()), 6.0)
check(x)
""",
    "a function where a tensor was": """
def apply(source, size):
    value = source(size) if callable(source) else source
    check(value.reshape(-1) if value.dim() > 1 else value)

apply(torch.ones, (3,))
""",
}


@pytest.mark.torch
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * bool(number)) for number, name in enumerate(TRAPS)]
)
def test_the_result_shows_the_mismatch_itself(probe: Probe, name: str) -> None:
    program = _START + TRAPS[name]
    mismatch = probe.mismatch(Repro(program))
    if mismatch is None:
        pytest.skip("the installed torch no longer has this bug")
    result = minimize(
        program,
        lambda text: probe.ask(Question(Repro(text), mismatch.signature)),
        trace=lambda text: probe.trace(Repro(text)),
        budget=Budget(questions=150),
    )
    _is_the_bug(probe, result)
    assert probe.ask_in_fresh_process(Question(Repro(result.source), mismatch.signature)).same


def _is_the_bug(probe: Probe, result: Reduction) -> None:
    assert result.finished
    assert "deque(maxlen=0)" in result.source or "length)" in result.source
    assert "compile" in result.source
    for word in ("neighbour", "wrong_total", "print", "graph_break"):
        assert word not in result.source
    assert not count_defects(parse_python(result.source))
    assert result.lines <= 12
    assert run_plain(probe.environment, result.source, settings=None).status == 0
