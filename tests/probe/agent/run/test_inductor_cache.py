"""What inductor made for one candidate serves the next, and only where it was asked for and came to its end."""

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


@pytest.mark.torch
def test_candidates_share_what_was_compiled(agent: Agent) -> None:
    numbers = iter(range(100))

    def found(constant: int, more: str = "", *, reuse: bool = True) -> bool:
        source = SCRIPT.format(number=next(numbers), constant=constant) + more
        seen = agent.observe(Repro(source), Settings(), reuse=reuse)
        return "found 1" in seen.compiled.output

    assert not found(5)
    assert found(5)
    assert not found(6)
    assert not found(5, reuse=False)
    # Nothing is left of what a run had that was killed, for a file may be half written.
    found(5, "if counters['inductor']:\n    os.kill(os.getpid(), 9)\n")
    assert not found(5)
    assert found(5)


@pytest.mark.parametrize(("whole", "left"), [(True, ["a.so", "fxgraph/b"]), (False, [])])
def test_what_knows_the_script_is_not_kept(tmp_path: Path, whole: bool, left: list[str]) -> None:
    for name in ("a.so", "fxgraph/b", "aotautograd/c", "locks/d"):
        file = tmp_path / "made/inductor" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
    inductor_cache.cleared(str(tmp_path / "made"), whole=whole)
    kept = [os.path.relpath(path, tmp_path / "made/inductor") for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(kept) == left


def test_a_folder_that_grew_too_large_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inductor_cache, "KEPT_BYTES", 10)
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "a.so").write_text("x" * 11)
    inductor_cache.cleared(str(tmp_path / "made"), whole=True)
    assert not (tmp_path / "made").exists()
