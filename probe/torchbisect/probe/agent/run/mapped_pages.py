"""Map the same pages of libraries in a fork as in the process that it was forked from.

Linux copies no page table of a file that is only read (``vma_needs_copy`` in ``mm/memory.c``), so a fork maps each page
again when it first reads it. A load that is masked off reads nothing, and so never maps its page. Yet the processor
looks the page up, and on a page that is not mapped each such load takes hundreds of cycles. ``softmax`` of torch 2.2.2
takes 14 times as long in a fork for that, in Sleef's ``expf`` with AVX-512. A script that is run by itself finds that
page mapped.

Where the system does not tell which pages are mapped, nothing is done.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import re
from typing import List

_ENTRY = 8
#: Bit 63 of an entry of ``/proc/self/pagemap`` is set for a page that is mapped; this is that of its last byte.
_IS_MAPPED = bytes(int(value >= 128) for value in range(256))
_MAPPED = re.compile(b"\x01+")


def mapped_pages() -> List[range]:
    """Return the addresses of the pages of files that are mapped for reading alone, a range of them for each run."""
    found: List[range] = []
    with contextlib.suppress(OSError), open("/proc/self/maps") as areas, open("/proc/self/pagemap", "rb", 0) as table:
        for area in areas:
            place, rights, _, _, inode = area.split()[:5]
            if not rights.startswith("r--") or inode == "0":
                continue
            start, end = (int(address, 16) for address in place.split("-"))
            table.seek(start // mmap.PAGESIZE * _ENTRY)
            entries = table.read((end - start) // mmap.PAGESIZE * _ENTRY)
            for run in _MAPPED.finditer(entries[_ENTRY - 1 :: _ENTRY].translate(_IS_MAPPED)):
                first, last = (start + mmap.PAGESIZE * number for number in run.span())
                found.append(range(first, last, mmap.PAGESIZE))
    return found


def map_pages(pages: List[range]) -> None:
    """Read a byte of each page, so that it is mapped in this process."""
    for run in pages:
        for address in run:
            ctypes.string_at(address, 1)
