"""A process that asked for it has the constants of libraries mapped, in a fork too, and keeps freed memory."""

from __future__ import annotations

import ctypes
import mmap
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from torchbisect.probe.agent.run.steady_memory import constant_areas, release_freed_memory, steady_memory

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells which pages are mapped")


def missing_pages() -> int:
    """Return how many pages of constants are not mapped: bit 63 of an entry of 8 bytes tells that one is."""
    with open("/proc/self/pagemap", "rb", 0) as table:
        missing = 0
        for area in constant_areas():
            table.seek(area.start // mmap.PAGESIZE * 8)
            entries = table.read(len(area) * 8)
            missing += sum(last < 128 for last in entries[7::8])
    return missing


def pages_for_a_large_block() -> int:
    """Return how many pages this process gets from the system for 30 MB, the second time that it needs them."""
    library = ctypes.CDLL(None)
    library.malloc.restype = ctypes.c_void_p
    library.malloc.argtypes = [ctypes.c_size_t]
    library.free.argtypes = [ctypes.c_void_p]
    for _ in range(2):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        block = library.malloc(30_000_000)
        ctypes.memset(block, 1, 30_000_000)
        library.free(block)
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    return faults


def resident_after_a_release() -> int:
    """Return the KiB that this process holds of 60 MB in small blocks, once they were freed and given back."""
    before = resident()
    kept = [bytearray(1000) for _ in range(60_000)]
    last = kept.pop()
    kept.clear()
    release_freed_memory()
    assert last
    return resident() - before


def resident() -> int:
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def in_a_fork(first: Callable[[], object], count: Callable[[], int]) -> int:
    """Return what is counted in a fork after it has done something."""
    reader, writer = os.pipe()
    process = os.fork()
    if not process:
        try:
            first()
            os.write(writer, str(count()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(process, 0)
    with open(reader) as answer:
        return int(answer.read())


def in_a_new_process(*steps: Callable[[], object]) -> int:
    """Return what the last of these functions returns after the others, in a process that did nothing before.

    In a fork of a process that ran many tests, a block at the end of the heap keeps what is free before it.
    """
    names = ", ".join(step.__name__ for step in steps)
    code = f"from {__name__} import *\nprint([step() for step in ({names},)][-1])"
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


def nothing() -> None:
    """Leave the process as it is."""


def trim_at_once() -> None:
    """Have glibc keep blocks of 30 MB in its heap, and give back what is free at the heap's end."""
    set_option = ctypes.CDLL(None).mallopt
    assert set_option(-3, 32 << 20)
    assert set_option(-1, 128 << 10)


def test_a_fork_has_the_constants_of_libraries_mapped() -> None:
    import torch

    assert torch.softmax(torch.ones(2, 32), -1)[0, 0] == 1 / 32
    assert sum(map(len, constant_areas())) > 1000
    assert in_a_fork(nothing, missing_pages) > 1000
    assert in_a_fork(steady_memory, missing_pages) == 0


def test_freed_memory_is_kept() -> None:
    assert in_a_new_process(trim_at_once, pages_for_a_large_block) > 1000
    assert in_a_new_process(trim_at_once, steady_memory, pages_for_a_large_block) < 100


def test_freed_memory_can_be_given_back() -> None:
    assert in_a_fork(steady_memory, resident_after_a_release) < 10_000
