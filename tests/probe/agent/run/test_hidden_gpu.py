"""What an agent asks of NVIDIA's driver, and what it keeps of its answers.

Libraries in the place of the driver's say that there is one GPU, and note which process called them.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from torchbisect.containers.environment import Environment
from torchbisect.core.repro import Repro, Settings
from torchbisect.probe.agent.run import hidden_gpu
from torchbisect.probe.agent_client import Agent

pytestmark = pytest.mark.slow

_SOURCE = """
#include <stdio.h>
#include <unistd.h>
#define FUNCTION(name, result) int name(int *count) { \\
    FILE *file = fopen("%s", "a"); \\
    fprintf(file, "%%s %%d %%d\\n", #name, getpid(), getppid()); \\
    fclose(file); \\
    result; }
"""
_LIBRARIES = {
    "libnvidia-ml.so.1": ("nvmlInit", "nvmlInit_v2", "nvmlDeviceGetCount_v2"),
    "libcuda.so.1": ("cuInit", "cuDriverGetVersion", "cuGetProcAddress", "cuGetProcAddress_v2", "cuGetExportTable"),
}
SCRIPT = "import torch\nprint(torch.compile(lambda x: x * 2)(torch.ones(4)), torch.cuda.device_count())\n"


def _result(function: str) -> str:
    if function.startswith("cu"):
        return "return 100"  # CUDA_ERROR_NO_DEVICE
    return "*count = 1; return 0" if "Count" in function else "return 0"


@pytest.fixture
def release(torch_of: Callable[[str], Environment]) -> Environment:
    """A build with CUDA. It comes before ``calls``: the first imports after an install are no agent's."""
    environment = torch_of("2.8.0")
    if environment.facts.cuda is None:
        pytest.skip("the index gave a build without CUDA")
    return environment


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[list[str]]]:
    """Return a function that returns the calls so far: the function, its process and the parent of that."""
    noted = tmp_path / "calls"
    for library, functions in _LIBRARIES.items():
        source = _SOURCE % noted + "".join(f"FUNCTION({name}, {_result(name)})\n" for name in functions)
        compiler = shutil.which("gcc") or pytest.fail("the tests need gcc")
        command = [compiler, "-shared", "-fPIC", "-x", "c", "-", "-o", str(tmp_path / library)]
        subprocess.run(command, input=source, text=True, check=True, timeout=60)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    return lambda: [line.split() for line in noted.read_text().splitlines()] if noted.exists() else []


@pytest.mark.long
def test_an_agent_never_calls_the_driver_itself(release: Environment, calls: Callable[[], list[list[str]]]) -> None:
    with Agent(release) as agent:
        for backend in ("aot_eager", "inductor", "inductor"):
            agent.observe(Repro(SCRIPT), Settings(backend=backend), prewarm=True)
    callers, parents = ({call[at] for call in calls()} for at in (1, 2))
    assert callers, "no run looked for a GPU"
    assert not callers & parents, calls()


def asks_alone() -> bool:
    return bool(torch.cuda.is_available())


@functools.lru_cache
def asks_and_keeps() -> bool:
    return asks_alone()


@functools.lru_cache
def asks_and_registers() -> None:
    REGISTERED.append(asks_alone())


REGISTERED: list[bool] = []


def test_answers_given_meanwhile_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch._C, "_cuda_init", lambda: None, raising=False)
    monkeypatch.setattr(torch.cuda, "_is_compiled", lambda: True)
    monkeypatch.setattr(torch.cuda, "_device_count_nvml", lambda: 1)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    monkeypatch.setenv("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    assert torch.cuda.is_available()
    names = dict(vars(torch.cuda)), dict(vars(torch._C))
    with hidden_gpu.HiddenGpu():
        assert not asks_and_keeps()
        assert torch.cuda.device_count() == 1
        with pytest.raises(RuntimeError, match="forks"):
            torch._C._cuda_init()
        asks_and_registers()
        imported = dict[str, bool]()
        exec(compile("import torch\nis_there = torch.cuda.is_available()", "module.py", "exec"), imported)
    assert asks_and_keeps()
    asks_and_registers()
    assert REGISTERED == [False]
    assert imported["is_there"]
    assert (vars(torch.cuda), vars(torch._C)) == names
