"""Facts about the C++ compiler that outlive a process, and nothing that a script made."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from torchbisect.containers.environment import Venv
from torchbisect.core.repro import Repro
from torchbisect.probe.agent.run import compiler_cache
from torchbisect.probe.journal import Journal
from torchbisect.probe.probe import Probe
from torchbisect.probe.standalone_run import compiler_folders

SCRIPT = """\
import torch
def f(x):
    return x * 0
y = torch.compile(f)(torch.full((4,), {value}))
assert not y.isnan().any() or torch.compiler.is_compiling()
"""


def files(folder: Path) -> dict[str, int]:
    """Return the files of a folder, with the time of their last change."""
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


KEPT = ("imported-modules", "every-instruction-set-works", "instruction-sets/", "precompiled-headers/")
PREWARM = """\
import sys, torch
from torchbisect.probe.agent.run.prewarm import Prewarmer
torch._dynamo.config.enable_cpp_symbolic_shape_guards = True  # as in torch 2.9.0
Prewarmer(sys.argv[1], sys.argv[2]).prewarm("eager")
"""


@pytest.mark.torch
def test_an_agent_builds_nothing_that_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for scripts of the eager backend either, whose guards of symbolic sizes torch 2.9.0 compiles."""
    compiler, log = tmp_path / "c++", tmp_path / "log"
    compiler.write_text(f'#!/bin/sh\necho "$@" >> {log}\nexec g++ "$@"\n')
    compiler.chmod(0o755)
    built = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        log.write_text("")
        command = [sys.executable, "-c", PREWARM, str(tmp_path / name), str(tmp_path / "kept")]
        subprocess.run(command, check=True, env={**os.environ, "CXX": str(compiler)})
        built.append([line for line in log.read_text().splitlines() if "-shared" in line])
    assert built[0]
    assert not built[1]
    monkeypatch.setenv("CXX", str(compiler))
    assert compiler_cache.variables(str(tmp_path / "kept")) == {"TORCHINDUCTOR_VEC_ISA_OK": "1"}
    monkeypatch.setenv("CXX", "g++")  # of which nothing is known
    assert compiler_cache.variables(str(tmp_path / "kept")) == {}


@pytest.mark.torch
@pytest.mark.long
def test_an_instruction_set_that_the_compiler_refuses_is_tested_by_each_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = tmp_path / "c++"
    compiler.write_text('#!/bin/sh\ncase "$*" in *-mavx*) exit 1;; esac\nexec g++ "$@"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    subprocess.run([sys.executable, "-c", PREWARM, str(tmp_path), str(tmp_path / "kept")], check=True)
    assert (tmp_path / "kept" / compiler_cache.INSTRUCTION_SETS).is_dir()
    assert compiler_cache.variables(str(tmp_path / "kept")) == {}


@pytest.mark.torch
def test_an_agent_compiles_first_wherever_a_compile_asks_for_the_instruction_sets() -> None:
    """For one script, too: its own run would build the instruction sets anew."""
    source = """\
import torch
from torchbisect.probe.agent.run.prewarm import first_compile_is_slow
for compiled in (False, True):
    torch._dynamo.config.enable_cpp_symbolic_shape_guards = compiled
    print([first_compile_is_slow(backend) for backend in ("eager", "aot_eager", "inductor")])
"""
    said = subprocess.run([sys.executable, "-c", source], check=True, capture_output=True, text=True).stdout
    assert said.splitlines() == ["[False, False, True]", "[True, True, True]"]


@pytest.mark.torch
@pytest.mark.long
def test_scripts_leave_nothing_in_the_compiler_cache(
    torch_of: Callable[[str], Venv], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "kept"
    environment = replace(torch_of("installed"), compiler_cache=str(kept))
    with Probe(environment, Journal()) as probe:
        wrong = probe.mismatch(Repro(SCRIPT.format(value="float('nan')")))
        first = files(kept)
        right = probe.mismatch(Repro(SCRIPT.format(value="1.0")))
    assert first
    assert all(name.startswith(KEPT) for name in first)
    assert not any("pointwise" in path.read_text(errors="replace") for path in kept.rglob("*.cpp"))
    # The same kernel in another process and another order: the same answers, and no file that is new or changed.
    with Probe(environment, Journal()) as probe:
        assert (probe.mismatch(Repro(SCRIPT.format(value="1.0"))) is None) == (right is None)
        assert (probe.mismatch(Repro(SCRIPT.format(value="float('nan')"))) is None) == (wrong is None)
    assert files(kept) == first
    # A plain run gets copies, so that what it writes there is not kept.
    folder = tmp_path / "plain"
    folder.mkdir()
    variables = compiler_folders(environment, str(folder))
    lent = [path for path in Path(variables["TORCHINDUCTOR_CACHE_DIR"]).rglob("*.so") if path.is_file()]
    assert lent
    assert all(path.stat().st_nlink == 1 for path in lent)


def test_a_library_that_is_there_is_not_built_again(tmp_path: Path) -> None:
    built, commands = tmp_path / "library.so", compiler_cache._ForkingSubprocess()
    build = [sys.executable, "-c", "import sys; open(sys.argv[2], 'w').close(); print('built')", "-o", str(built)]
    assert commands.check_output(build).split() == [b"built"]
    assert commands.check_output(build) == b""
