"""The figures about compiling: recompiles and graph breaks with reasons, seconds, and graphs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from torchbisect.probe.judge.observation import Observation

pytestmark = pytest.mark.torch


def test_recompiles_are_recorded_with_reasons(observe: Callable[..., Observation]) -> None:
    seen = observe(
        "f = torch.compile(lambda x, n: x * n, backend='eager', dynamic=False)\n"
        "for n in range(4): f(torch.ones(2), n)\n"
    )
    assert seen.differences == ()
    assert len(seen.compiled.recompiles) == 3
    assert "n" in seen.compiled.recompiles[0]
    assert len(seen.compiled.call_seconds) == len(seen.eager.call_seconds) == 4
    assert 0 < seen.compiled.compile_seconds < sum(seen.compiled.call_seconds) * 1.05
    assert seen.eager.compile_seconds == 0
    assert seen.eager.recompiles == ()


def test_graph_breaks_are_recorded_with_reasons(observe: Callable[..., Observation]) -> None:
    seen = observe(
        "@torch.compile(backend='eager')\ndef f(x):\n    x = x + 1\n    torch._dynamo.graph_break()\n    return x * 2\n"
        "f(torch.ones(2))\n"
    )
    assert seen.differences == ()
    assert len(seen.compiled.graph_breaks) == 1
    assert seen.compiled.graphs == 2


def test_a_script_without_recompiles_or_graph_breaks_records_none(observe: Callable[..., Observation]) -> None:
    seen = observe("f = torch.compile(lambda x: x * 2, backend='eager')\nf(torch.ones(2)), f(torch.ones(2))\n")
    assert (seen.compiled.graphs, seen.compiled.recompiles, seen.compiled.graph_breaks) == (1, (), ())


def test_frames_of_the_agent_are_never_compiled(observe: Callable[..., Observation]) -> None:
    seen = observe(
        "x = torch.ones(3, requires_grad=True)\ntorch._dynamo.config.compiled_autograd = True\n"
        "@torch.compile(backend='eager')\ndef step():\n    (x * 2).sum().backward()\nstep()\n"
    )
    assert seen.differences == ()
    assert seen.compiled.graphs == 2  # one forward, one backward
