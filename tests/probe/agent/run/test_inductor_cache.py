"""Runs share inductor's caches only under one name, and only if the run before ended normally."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from torchbisect.core.repro import Repro, Settings
from torchbisect.probe.agent.run import inductor_cache
from torchbisect.probe.agent_client import Agent

SCRIPT = """\
import os, torch
from torch._dynamo.utils import counters
print("script {number}")
f = torch.compile(lambda x: x.sin() + {constant})
f(torch.ones(3))
print("found", counters["inductor"]["fxgraph_cache_hit"])
"""


@pytest.mark.long
@pytest.mark.torch
def test_runs_share_compiled_graphs(agent: Agent) -> None:
    numbers = iter(range(100))

    def is_cached(constant: int, more: str = "", *, kernels: str = "one") -> bool:
        source = SCRIPT.format(number=next(numbers), constant=constant) + more
        seen = agent.observe(Repro(source), Settings(), kernels=kernels)
        return "found 1" in seen.compiled.output

    assert not is_cached(5)
    assert is_cached(5)
    assert not is_cached(6)
    assert not is_cached(5, kernels="")
    assert is_cached(5)
    # The caches of a killed run are deleted, because a file may be half written.
    is_cached(5, "if counters['inductor']:\n    os.kill(os.getpid(), 9)\n")
    assert not is_cached(5)
    assert is_cached(5)
    # No run of another name sees them, nor do those of this name after it.
    assert not is_cached(5, kernels="two")
    assert is_cached(5, kernels="two")
    assert not is_cached(5)


@pytest.mark.parametrize(("is_complete", "left"), [(True, ["a.so", "fxgraph/b"]), (False, [])])
def test_script_specific_caches_are_deleted(tmp_path: Path, is_complete: bool, left: list[str]) -> None:
    for name in ("a.so", "fxgraph/b", "aotautograd/c", "locks/d"):
        file = tmp_path / "caches/inductor" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
    inductor_cache.prune(str(tmp_path / "caches"), is_complete=is_complete)
    kept = [os.path.relpath(path, tmp_path / "caches/inductor") for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(kept) == left


def test_caches_that_are_too_large_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inductor_cache, "MAX_BYTES", 10)
    (tmp_path / "caches").mkdir()
    (tmp_path / "caches" / "a.so").write_text("x" * 11)
    inductor_cache.prune(str(tmp_path / "caches"), is_complete=True)
    assert not (tmp_path / "caches").exists()
