"""A fork has the pages of libraries mapped that the process has from which it was forked."""

from __future__ import annotations

import os
import sys

import pytest

from torchbisect.probe.agent.run.mapped_pages import map_pages, mapped_pages

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells which pages are mapped")


def missing_in_a_fork(*, mapped: bool) -> int:
    """Return the number of pages that a fork lacks of those that are mapped here."""
    reader, writer = os.pipe()
    pages = mapped_pages()
    process = os.fork()
    if not process:
        try:
            if mapped:
                map_pages(pages)
            there = {address for run in mapped_pages() for address in run}
            missing = sum(address not in there for run in pages for address in run)
            os.write(writer, str(missing).encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(process, 0)
    with open(reader) as answer:
        return int(answer.read())


def test_a_fork_maps_what_its_parent_has_mapped() -> None:
    import torch

    torch.softmax(torch.ones(2, 32), -1)
    assert sum(map(len, mapped_pages())) > 1000
    assert missing_in_a_fork(mapped=False) > 1000
    assert missing_in_a_fork(mapped=True) == 0
