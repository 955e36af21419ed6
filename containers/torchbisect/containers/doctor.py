"""Checks of the ``doctor`` command: what this machine has and lacks, and what to do about it."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import docker
import psutil

from torchbisect.containers.docker.engine import ENGINE_EXCEPTIONS
from torchbisect.containers.index.indexes import Indexes
from torchbisect.containers.index.pages import project_page
from torchbisect.containers.process.run_command import output_of
from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.containers.store.cache import cache_folder
from torchbisect.containers.store.disk import format_bytes, free_bytes
from torchbisect.containers.venv.installer import find_uv
from torchbisect.core.errors import TorchbisectError
from torchbisect.core.retry import RetryPolicy
from torchbisect.core.scrub import scrub_secrets

#: Bytes of free disk. A CUDA release and its libraries take about 6 GB, and a second one nearly as much.
RECOMMENDED_DISK = 15 * 10**9
#: Bytes of free memory: two torch processes that compile at once, and the system.
RECOMMENDED_MEMORY = 4 * 10**9


@dataclass(frozen=True)
class Check:
    """Result of one check.

    Attributes:
        ok: the work can go on. A thing that only some work needs, such as a GPU, is ok when it is absent; ``detail``
            then says so.
        advice: the step to take if it isn't ok, else empty.
    """

    name: str
    ok: bool
    detail: str
    advice: str = ""


def run_checks(
    python: str | Path = sys.executable, *, cache: Path | None = None, indexes: Indexes | None = None
) -> list[Check]:
    """Run all checks of this Python, cache folder and index; nothing here raises, and nothing is changed."""
    all_checks: list[Callable[[], Check]] = [
        lambda: python_check(python),
        uv_check,
        compiler_check,
        lambda: disk_check(cache_folder(cache)),
        memory_check,
        limits_check,
        lambda: index_check(indexes or Indexes.from_configuration()),
        gpu_check,
        docker_check,
    ]
    return [check() for check in all_checks]


def python_check(python: str | Path) -> Check:
    """Check the Python that environments are made from, and its torch."""
    try:
        found = Interpreter.of(python)
    except TorchbisectError as error:
        return Check("python", False, str(error), "name a CPython 3.8 or newer with --python")
    torch = f"torch {found.installed_torch}" if found.installed_torch else "no torch beside it"
    return Check("python", True, f"{found.version} ({found.abi}) at {found.path}, {torch}; {platform.platform()}")


def uv_check() -> Check:
    """Check the installer."""
    try:
        program = find_uv()
    except TorchbisectError as error:
        return Check("uv", False, str(error), "pip install uv")
    if found := _first_line([program, "--version"]):
        return Check("uv", True, found)
    return Check("uv", False, f"{program} does not start", "pip install --force-reinstall uv")


def compiler_check() -> Check:
    """Check the C++ compiler that inductor calls for code on a CPU; ``CXX`` comes first, as in inductor."""
    for name in filter(None, (os.environ.get("CXX"), "g++", "clang++")):
        program = shutil.which(name.split()[0])
        found = _first_line([program, "--version"]) if program else ""
        if found:
            return Check("C++ compiler", True, f"{program}: {found}")
    advice = "install one (Debian and Ubuntu: apt-get install g++), or set CXX"
    return Check("C++ compiler", False, "none found: inductor can't compile for the CPU", advice)


def disk_check(cache: Path) -> Check:
    """Check the room for environments."""
    try:
        free = free_bytes(cache)
    except OSError as error:
        return Check("disk", False, f"{cache}: {error}", "name another folder with --cache-dir")
    found = f"{format_bytes(free)} free for {cache}; {format_bytes(RECOMMENDED_DISK)} wanted"
    if free >= RECOMMENDED_DISK:
        return Check("disk", True, found)
    return Check("disk", False, found, "free some, or name a folder on a larger disk with --cache-dir")


def memory_check() -> Check:
    """Check the free memory, or what the cgroup allows where that is less."""
    free = psutil.virtual_memory().available
    limit, used = _cgroup_number("memory.max"), _cgroup_number("memory.current")
    if limit is not None:
        free = min(free, limit - (used or 0))
    found = f"{format_bytes(free)} available; {format_bytes(RECOMMENDED_MEMORY)} wanted"
    if free >= RECOMMENDED_MEMORY:
        return Check("memory", True, found)
    return Check("memory", False, found, "end other programs, or use --jobs 1")


def limits_check() -> Check:
    """Report the limits that a cgroup sets for this process."""
    limits = []
    memory, processes, quota = _cgroup_number("memory.max"), _cgroup_number("pids.max"), _cgroup_text("cpu.max").split()
    if memory is not None:
        limits.append(f"memory {format_bytes(memory)}")
    if processes is not None:
        limits.append(f"{processes} processes")
    if len(quota) == 2 and quota[0].isdigit():
        limits.append(f"{int(quota[0]) / int(quota[1]):.1f} CPUs")
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return Check("limits", True, f"{', '.join(limits) or 'no cgroup limits'}; {usable} CPUs usable")


def index_check(indexes: Indexes) -> Check:
    """Check that the main index answers and has torch."""
    main = indexes.urls[0]
    try:
        page = project_page(main, "torch", retry=RetryPolicy(total=0.0))
    except TorchbisectError as error:
        return Check("index", False, str(error), "check the network and the proxy, or name another with --index-url")
    place = scrub_secrets(main)
    if page is None:
        return Check("index", False, f"{place} has no torch", "name another with --index-url")
    return Check("index", True, f"{place} lists {len(page.packages)} files of torch")


def gpu_check() -> Check:
    """Report the GPUs that NVIDIA's driver lists; a CPU repro needs none."""
    program = shutil.which("nvidia-smi")
    if not program:
        return Check("GPU", True, "no nvidia-smi: repros run on the CPU")
    found = _first_line([program, "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"])
    if found:
        return Check("GPU", True, found)
    return Check("GPU", False, "nvidia-smi is there and shows no GPU", "check the driver; CPU repros run all the same")


def docker_check() -> Check:
    """Report the container engine; only ``--sandbox docker`` needs one."""
    try:
        client = docker.from_env(timeout=5)
        try:
            version, runtimes = client.version(), client.info().get("Runtimes") or {}
        finally:
            client.close()
    except (*ENGINE_EXCEPTIONS, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        advice = "start it (dockerd), or let DOCKER_HOST name one; --sandbox venv works without"
        return Check("docker", True, f"no engine answers, so no --sandbox docker ({reason})", advice)
    gpus = "gives GPUs to containers" if "nvidia" in runtimes else "no NVIDIA runtime, so no GPU in containers"
    return Check("docker", True, f"engine {version.get('Version')} on {version.get('KernelVersion')}; {gpus}")


def _first_line(command: list[str]) -> str:
    return next(iter(output_of(command, 20).strip().splitlines()), "")


def _cgroup_text(name: str) -> str:
    """Read one setting of this process's own cgroup (version 2); empty if there is none."""
    try:
        own = Path("/proc/self/cgroup").read_text(encoding="ascii").strip().rpartition(":")[2].lstrip("/")
    except OSError:
        return ""
    for folder in (Path("/sys/fs/cgroup") / own, Path("/sys/fs/cgroup")):
        try:
            return (folder / name).read_text(encoding="ascii").strip()
        except OSError:
            continue
    return ""


def _cgroup_number(name: str) -> int | None:
    text = _cgroup_text(name)
    return int(text) if text.isdigit() else None
