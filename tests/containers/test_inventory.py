"""Contents of the cache and their removal, on a real cache made by the real uv."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from torchbisect.containers.index.indexes import Indexes
from torchbisect.containers.inventory import list_cache, prune_cache
from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.containers.store.cache import Cache
from torchbisect.containers.store.disk import folder_size
from torchbisect.containers.venv.environments import VenvEnvironments
from torchbisect.core.build import Build


@pytest.mark.torch
def test_the_cache_is_listed_and_environments_in_use_are_not_pruned(
    tree: Any, tmp_path: Path, interpreter: Interpreter
) -> None:
    tree.add("torch", "2.7.0")
    tree.add("torch", "2.8.0")
    cache = Cache(tmp_path / "cache")
    venvs = VenvEnvironments(cache, interpreter, Indexes(tree.url))
    for version in ("2.7.0", "2.8.0"):
        venvs.environment(Build(version))
    venvs.release(Build("2.7.0"))
    (cache.journal / "answers").write_bytes(b"x" * 10_000)
    things = list_cache(cache)
    assert [thing.kind for thing in things] == ["environment", "environment", "wheels", "journal"]
    assert {thing.name.split("-")[1]: thing.busy for thing in things[:2]} == {"2.7.0": False, "2.8.0": True}
    assert all(thing.size > 4000 for thing in things)
    said: list[str] = []
    prune_cache(cache, notify=said.append)
    assert [venvs.has(Build(version)) for version in ("2.7.0", "2.8.0")] == [False, True]
    assert len([line for line in said if line.startswith("kept")]) == 1
    assert venvs.environment(Build("2.8.0")).run(["-c", "import torch"], timeout=60).status == 0
    venvs.close()
    prune_cache(cache, journal=True)
    assert [thing.kind for thing in list_cache(cache)] == ["wheels", "journal"]
    assert sum(thing.size for thing in list_cache(cache)) == 0
    again = VenvEnvironments(cache, interpreter, Indexes(tree.url))
    assert again.environment(Build("2.8.0")).facts.torch == "2.8.0"
    again.close()


def test_a_file_with_several_names_counts_once(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"x" * 100_000)
    alone = folder_size(tmp_path)
    (tmp_path / "two").hardlink_to(tmp_path / "one")
    assert folder_size(tmp_path) == alone >= 100_000
