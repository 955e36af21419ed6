"""Leases: an environment is made once, stays while it is leased, and is made again if it was removed meanwhile."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from torchbisect.containers.store.cache import Cache
from torchbisect.containers.store.lease import Leases
from torchbisect.core.build import Build
from torchbisect.core.retry import silent

BUILD = Build("2.8.0")
KEY = "torch-2.8.0"


class Shelf:
    """One environment that tests make and remove."""

    def __init__(self) -> None:
        self.made = 0
        self.there = False

    def find(self) -> int | None:
        return self.made if self.there else None

    def exists(self) -> bool:
        return self.there

    def make(self) -> None:
        time.sleep(0.1)
        self.made += 1
        self.there = True


def lease(leases: Leases, shelf: Shelf, cancel: threading.Event | None = None) -> int | None:
    return leases.acquire(
        KEY, BUILD, find=shelf.find, exists=shelf.exists, make=shelf.make, notify=silent, cancel=cancel
    )


def test_threads_make_one_environment_and_share_it(tmp_path: Path) -> None:
    cache, shelf = Cache(tmp_path), Shelf()
    leases = Leases(cache)
    found: list[int | None] = []
    threads = [threading.Thread(target=lambda: found.append(lease(leases, shelf))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [1, 1, 1, 1]
    for _ in range(4):
        assert not cache.lease_lock(KEY, shared=False).try_acquire()
        assert leases.release(KEY)
    assert not leases.release(KEY)
    assert cache.lease_lock(KEY, shared=False).try_acquire()


def test_an_environment_removed_before_its_lease_is_made_again(tmp_path: Path) -> None:
    class Removed(Shelf):
        def make(self) -> None:
            super().make()
            self.there = self.made > 1

    leases = Leases(Cache(tmp_path))
    assert lease(leases, Removed()) == 2


def test_nothing_stays_leased_after_an_error(tmp_path: Path) -> None:
    class Unreadable(Shelf):
        def find(self) -> int | None:
            raise OSError("unreadable")

    cache = Cache(tmp_path)
    leases = Leases(cache)
    with pytest.raises(OSError, match="unreadable"):
        lease(leases, Unreadable())
    assert cache.lease_lock(KEY, shared=False).try_acquire()
    assert not leases.release(KEY)


def test_the_wait_for_another_install_ends_with_cancel_or_close(tmp_path: Path) -> None:
    cache, shelf, cancel = Cache(tmp_path), Shelf(), threading.Event()
    leases = Leases(cache)
    with cache.install_lock(KEY).held():
        cancel.set()
        assert lease(leases, shelf, cancel) is None
        leases.close()
        assert lease(leases, shelf) is None
    assert shelf.made == 0


def test_close_gives_back_all_leases(tmp_path: Path) -> None:
    cache, shelf = Cache(tmp_path), Shelf()
    leases = Leases(cache)
    assert lease(leases, shelf) == lease(leases, shelf) == 1
    leases.close()
    assert cache.lease_lock(KEY, shared=False).try_acquire()
