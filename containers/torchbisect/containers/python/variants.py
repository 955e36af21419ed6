"""CUDA variants of torch that fit a machine, by its driver and GPU.

The choice is a first guess from published tables. Once a build is installed, the build itself is asked whether it has
kernels for the GPU.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from torchbisect.containers.process.run_command import output_of
from torchbisect.core.build import Build
from torchbisect.core.decode import DecodeError, decode, read_object
from torchbisect.core.errors import InputError, InstallFailed
from torchbisect.core.printable import one_line

#: The oldest Linux driver for each major version of CUDA, which runs all its minor versions.
#: Source: "CUDA minor version compatibility" in NVIDIA's CUDA compatibility guide.
OLDEST_DRIVER = {11: Version("450.80.2"), 12: Version("525.60.13"), 13: Version("580.65.6")}

#: Lowest compute capability and newest GPU generation that the wheels of a CUDA version have kernels for.
_CAPABILITIES = {
    (11, 0): ((3, 7), 8),
    (11, 8): ((3, 7), 9),
    (12, 0): ((5, 0), 9),
    (12, 8): ((7, 0), 12),
    (13, 0): ((7, 5), 12),
}


_CAPABILITY = re.compile(r"([0-9]{1,3})\.([0-9]{1,3})")
_LONGEST_LINE = 1000


@dataclass(frozen=True)
class Gpu:
    """One GPU, as the driver describes it: name, version of the driver, and compute capability."""

    name: str
    driver: Version
    capability: tuple[int, int]


def find_gpus() -> list[Gpu]:
    """Return the GPUs of this machine, as ``nvidia-smi`` lists them; none if there is no driver."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    command = [program, "--query-gpu=name,driver_version,compute_cap", "--format=csv,noheader"]
    return parse_gpus(output_of(command, 30))


def parse_gpus(listing: str) -> list[Gpu]:
    """Return the GPUs in ``nvidia-smi``'s list of names, drivers and compute capabilities; ignore other lines."""
    found = []
    for line in listing.splitlines():
        parts = [part.strip() for part in line[:_LONGEST_LINE].split(",")]
        capability = _CAPABILITY.fullmatch(parts[-1])
        try:
            if len(parts) >= 3 and capability:
                name = ", ".join(parts[:-2])
                found.append(Gpu(name, Version(parts[-2]), (int(capability[1]), int(capability[2]))))
        except InvalidVersion:
            continue
    return found


def cuda_version(variant: str) -> tuple[int, int] | None:
    """Return the CUDA version of a variant: 12.6 for ``cu126``; ``None`` for ``cpu`` and others without CUDA."""
    found = re.fullmatch(r"cu([0-9]{1,3})([0-9])", variant)
    return (int(found[1]), int(found[2])) if found else None


def incompatibility(variant: str, gpu: Gpu) -> str | None:
    """Return the reason why a variant can't run on a GPU, by the tables; ``None`` if it should run."""
    cuda = cuda_version(variant)
    if cuda is None:
        return None
    oldest = OLDEST_DRIVER.get(cuda[0])
    if oldest is not None and gpu.driver < oldest:
        return f"driver {gpu.driver} is too old for CUDA {cuda[0]}.{cuda[1]}: it needs {oldest} or newer"
    known = [version for version in _CAPABILITIES if version <= cuda]
    if known:
        lowest, newest = _CAPABILITIES[max(known)]
        written = ".".join(map(str, gpu.capability))
        if gpu.capability < lowest:
            return f"builds for CUDA {cuda[0]}.{cuda[1]} have no kernels for GPUs as old as {gpu.name} ({written})"
        if gpu.capability[0] > newest:
            return f"builds for CUDA {cuda[0]}.{cuda[1]} have no kernels for GPUs as new as {gpu.name} ({written})"
    return None


def choose_variant(offered: Sequence[str], gpus: Sequence[Gpu]) -> str:
    """Return the newest offered CUDA variant that runs on the first GPU; ``cpu`` without a GPU.

    Raise ``InputError`` if there is a GPU and none of the offered variants runs on it.
    """
    cuda = [variant for variant in offered if cuda_version(variant)]
    if not gpus or not cuda:
        return "cpu"
    reasons = {variant: incompatibility(variant, gpus[0]) for variant in cuda}
    fitting = [variant for variant in cuda if reasons[variant] is None]
    if not fitting:
        raise InputError(
            f"no variant of torch runs on {gpus[0].name} ({reasons[cuda[-1]]}): use --device cpu, or another machine"
        )
    return max(fitting, key=lambda variant: cuda_version(variant) or (0, 0))


#: Script that runs a small computation on the GPU in a build's own environment, and prints what it found.
GPU_QUERY = r"""
import json
import torch
facts = {"built": torch.version.cuda, "available": torch.cuda.is_available()}
if facts["available"]:
    facts["capability"] = list(torch.cuda.get_device_capability())
    facts["architectures"] = torch.cuda.get_arch_list()
    try:
        facts["sum"] = float((torch.ones(2, device="cuda") + 1).sum())
    except Exception as error:
        facts["error"] = str(error).splitlines()[0]
print(json.dumps(facts))
"""


@dataclass(frozen=True)
class _GpuFacts:
    """The answer to ``GPU_QUERY``."""

    built: str | None = None
    available: bool = False
    capability: tuple[int, ...] = ()
    architectures: tuple[str, ...] = ()
    sum: float | None = None


def gpu_failure(answer: str, build: Build) -> InstallFailed | None:
    """Return the reason why a build can't compute on the GPU, from its answer to ``GPU_QUERY``; ``None`` if it can."""
    try:
        facts = decode(_GpuFacts, read_object(answer.splitlines()[-1]), "its answer")
    except (DecodeError, IndexError):
        return InstallFailed("gpu-unusable", f"torch {build} could not be asked about the GPU")
    if not facts.built:
        return InstallFailed("not-a-cuda-build", f"torch {build} is built for the CPU only")
    if not facts.available:
        built = one_line(facts.built, 20)
        return InstallFailed(
            "gpu-unusable", f"torch {build} (CUDA {built}) sees no GPU: the driver may be too old for it"
        )
    if facts.sum != 4.0:
        capability = "".join(map(str, facts.capability))
        has = one_line(", ".join(facts.architectures))
        return InstallFailed("no-kernels-for-gpu", f"torch {build} has no kernels for sm_{capability}, only for {has}")
    return None
