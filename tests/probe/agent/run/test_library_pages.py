"""The constants of libraries are mapped in a process once it asked for that, in a fork too."""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Callable

import pytest

from torchbisect.probe.agent.run.library_pages import constant_areas, map_library_pages

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


def missing_in_a_fork(first: Callable[[], object]) -> int:
    """Return the number of pages that a fork lacks after it has done something."""
    reader, writer = os.pipe()
    process = os.fork()
    if not process:
        try:
            first()
            os.write(writer, str(missing_pages()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(process, 0)
    with open(reader) as answer:
        return int(answer.read())


def test_a_fork_has_the_constants_of_libraries_mapped() -> None:
    import torch

    assert torch.softmax(torch.ones(2, 32), -1)[0, 0] == 1 / 32
    assert sum(map(len, constant_areas())) > 1000
    assert missing_in_a_fork(lambda: None) > 1000
    assert missing_in_a_fork(map_library_pages) == 0
