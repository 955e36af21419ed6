"""Map the constants of every library in this process, so that its time does not hang on which pages it has read.

A load that AVX-512 masks off reads nothing, and so never maps its page. Yet the processor looks the page up, and where
it is not mapped each such load takes hundreds of cycles: ``softmax`` of torch 2.4.1 takes 24 times as long in one of
eight processes for that, in Sleef's ``expf``. A fork meets it more often, as Linux copies no page table of a file that
is only read (``vma_needs_copy`` in ``mm/memory.c``).

Where the system does not tell what is mapped where, nothing is done.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
from typing import List

#: Bytes of an area of constants at most. A larger one holds the code of kernels for GPUs.
_LARGEST = 256 << 20
#: The library of the kernels for the CPU. Some builds of it have code and constants in one area.
_KERNELS = "/libtorch_cpu."


def constant_areas() -> List[range]:
    """Return where this process has the constants of libraries, each an area of the addresses of its pages."""
    found: List[range] = []
    with contextlib.suppress(OSError), open("/proc/self/maps") as areas:
        for area in areas:
            place, rights, _, _, inode = area.split()[:5]
            start, end = (int(address, 16) for address in place.split("-"))
            is_constant = rights == "r--p" and inode != "0" and end - start <= _LARGEST
            if is_constant or (rights == "r-xp" and _KERNELS in area):
                found.append(range(start, end, mmap.PAGESIZE))
    return found


def map_library_pages() -> None:
    """Read a byte of each page that may hold a library's constants; about 50 ms after ``import torch``."""
    for area in constant_areas():
        for address in area:
            ctypes.string_at(address, 1)
