"""The limit of a cache: its default, and what is removed first to keep it."""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchbisect.containers.store.cache import FACTS_FILE, Cache, default_limit
from torchbisect.core.errors import DiskFull

GB = 10**9


@pytest.mark.parametrize(("disk", "limit"), [(1000 * GB, 100 * GB), (252 * GB, 25.2 * GB), (64 * GB, 20 * GB)])
def test_the_default_is_a_tenth_of_the_disk_and_room_for_three_builds(disk: int, limit: int, tmp_path: Path) -> None:
    assert default_limit(disk) == limit
    assert Cache(tmp_path).limit >= 20 * GB
    assert Cache(tmp_path, limit=1000).limit == 1000


def test_its_folder_is_marked_as_a_cache(tmp_path: Path) -> None:
    for _ in range(2):
        Cache(tmp_path / "cache")
    assert (tmp_path / "cache" / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")


def fill(cache: Cache, key: str, age: int, size: int = 100_000) -> Path:
    """Put an environment in the cache, with a wheel whose files it links."""
    archive = cache.wheels / "archive-v0" / f"id{key}"
    (archive / f"torch-{key}.dist-info").mkdir(parents=True)
    (archive / "torch.so").write_bytes(b"x" * size)
    notes = cache.wheels / "wheels-v8" / "index" / "torch"
    notes.mkdir(parents=True, exist_ok=True)
    (notes / f"{key}.rev").write_bytes(b"\x92" + archive.name.encode())
    (notes / key).symlink_to(archive)
    folder = cache.venvs / key
    folder.mkdir()
    (folder / "torch.so").hardlink_to(archive / "torch.so")
    (folder / FACTS_FILE).touch()
    os.utime(folder / FACTS_FILE, (1e9 - age, 1e9 - age))
    return archive


def names(cache: Cache) -> list[str]:
    return [kept.key for kept in cache.environments()]


def test_what_could_be_kept_is_within_the_limit_and_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(tmp_path, limit=400_000)
    fill(cache, "there", 10)
    for free, kept in ((10**9, 400_000), (350_000, 400_000), (200_000, 300_000), (0, 100_000)):
        monkeypatch.setattr(Cache, "free", lambda _, free=free: free)
        assert cache.could_keep(kept)
        assert not cache.could_keep(kept + 40_000)


def test_what_is_kept_in_reserve_is_given_back_only_where_room_is_short(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=400_000)
    fill(cache, "reserve", 10)
    lease = cache.lease_lock("reserve")
    lease.acquire()
    with cache.giving_back(lease.release):
        cache.make_room(150_000)
        assert not cache.evict("reserve"), "there was room"
        cache.make_room(350_000)
    assert names(cache) == []
    with cache.giving_back(lambda: pytest.fail("not in its context")):
        pass
    cache.make_room(10**6)


def test_the_environment_unused_longest_goes_first_and_wheels_before_it(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=400_000)
    places = {key: fill(cache, key, age) for key, age in (("new", 10), ("old", 30), ("older", 40))}
    assert cache.evict("older"), "its wheel stays for the next environment"
    said: list[str] = []
    cache.make_room(150_000, notify=said.append)
    assert (names(cache), said) == (["old", "new"], []), "a wheel that nobody uses is enough"
    assert not places["older"].exists()
    assert cache.packages() == {"torch-old", "torch-new"}
    assert sorted(path.name for path in cache.wheels.glob("wheels-v8/index/torch/*")) == [
        "new",
        "new.rev",
        "old",
        "old.rev",
    ]
    cache.make_room(250_000, notify=said.append)
    assert names(cache) == ["new"]
    assert not places["old"].exists()
    assert len(said) == 1
    assert "old" in said[0]


@settings(deadline=None, max_examples=30)
@given(
    sizes=st.lists(st.tuples(st.integers(1, 300), st.integers(0, 300)), max_size=5),
    wanted=st.integers(0, 2000).map(lambda thousands: thousands * 1000),
)
def test_room_is_made_as_if_the_folder_were_summed_up_after_each_removal(
    sizes: list[tuple[int, int]], wanted: int
) -> None:
    """The sizes are thousands of bytes of each environment's wheel, and of files that the environment has alone."""
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        caches = [Cache(folder, limit=2_000_000) for folder in (first, second)]
        for cache in caches:
            for number, (wheel, own) in enumerate(sizes):
                fill(cache, f"e{number}", age=100 - number, size=wheel * 1000)
                (cache.venvs / f"e{number}" / "own").write_bytes(b"x" * own * 1000)
        counted, summed = caches
        counted.make_room(wanted)
        while summed.available() < wanted and (summed.remove_unlinked() or summed.evict_oldest()):
            pass
        assert names(counted) == names(summed)
        assert counted.packages() == summed.packages()
        assert counted.available() >= wanted or not names(counted)


def test_environments_in_use_stay_whatever_the_limit(tmp_path: Path) -> None:
    cache, warned = Cache(tmp_path, limit=250_000), list[str]()
    for key, age in (("used", 30), ("next", 20), ("free", 10)):
        fill(cache, key, age)
    lease = cache.lease_lock("used")
    lease.acquire()
    assert cache.make_room(0, taken=0), "what it took a moment ago is believed where that is enough"
    assert names(cache) == ["used", "next", "free"]
    cache.make_room(200_000, taken=cache.taken(), warn=warned.append)
    assert names(cache) == ["used"]
    assert len(warned) == 1
    assert "over its limit of 250 kB" in warned[0]
    with pytest.raises(DiskFull, match="--cache-dir"):
        cache.make_room(10**18)
    assert names(cache) == ["used"]
    lease.release()


def test_a_running_install_keeps_its_wheels_and_its_room(tmp_path: Path) -> None:
    cache, stop = Cache(tmp_path, limit=400_000), threading.Event()
    fill(cache, "one", 10)
    installing = cache.wheels_lock(shared=True)
    installing.acquire()
    stop.set()
    assert not cache.make_room(350_000, cancel=stop), "what it has fetched is not linked yet"
    assert names(cache) == ["one"]
    assert cache.make_room(200_000, cancel=stop), "there is room without removing anything"
    with cache.reserved("two", 200_000) as made:
        assert made
        assert cache.available() < 100_000 + 1
        assert not cache.make_room(150_000, cancel=stop)
    installing.release()
    assert cache.available() > 200_000
