"""Keep the time of a process from hanging on chance in its memory: on pages it has not read, on pages it gives back.

*Constants of libraries.* A load that AVX-512 masks off reads nothing, and so never maps its page. Yet the processor
looks the page up, and where it is not mapped each such load takes hundreds of cycles: ``softmax`` of torch 2.4.1 takes
24 times as long in one of eight processes for that, in Sleef's ``expf``. A fork meets it more often, as Linux copies no
page table of a file that is only read (``vma_needs_copy`` in ``mm/memory.c``).

*Freed memory.* The C library gives memory at the end of its heap back to the system, if enough of it is free
(``M_TRIM_THRESHOLD`` in ``mallopt(3)``). Where a large tensor happens to lie there, each call of a function gets its
pages anew: the same ``softmax`` takes 2 or 7 times as long in one of five processes.

Where the system lacks one of these, nothing is done.
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
#: The parameters of ``mallopt`` in glibc's ``malloc.h``.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
#: Bytes: the largest that glibc takes as the size from which a block is a mapping of its own.
_LARGEST_IN_HEAP = 32 << 20
_NEVER_TRIM = 2**31 - 1


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


def steady_memory() -> None:
    """Read a byte of each page that may hold a library's constants, and keep freed memory from now on.

    It takes about 50 ms after ``import torch``.
    """
    for area in constant_areas():
        for address in area:
            ctypes.string_at(address, 1)
    with contextlib.suppress(AttributeError):
        set_option = ctypes.CDLL(None).mallopt
        set_option(_MMAP_THRESHOLD, _LARGEST_IN_HEAP)
        set_option(_TRIM_THRESHOLD, _NEVER_TRIM)


def release_freed_memory() -> None:
    """Give the memory that is free now back to the system, so that what the process holds is what it uses."""
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
