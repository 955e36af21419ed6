"""``torchbisect cache``: what is kept, and what is removed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from torchbisect.cli.commands import main
from torchbisect.containers.store.cache import FACTS_FILE, Cache


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    """Two environments of 200 kB."""
    cache = Cache(tmp_path / "cache")
    for age, key in enumerate(("new", "old")):
        folder = cache.venvs / key
        folder.mkdir()
        (folder / "torch.so").write_bytes(b"x" * 200_000)
        (folder / FACTS_FILE).touch()
        os.utime(folder / FACTS_FILE, (1e9 - age, 1e9 - age))
    return cache


@pytest.mark.parametrize(
    ("words", "left"),
    [
        ([], ["old", "new"]),
        (["--down-to", "1GB"], ["old", "new"]),
        (["--down-to", "300kB"], ["new"]),
        (["--down-to", "1kB"], []),
        (["--prune"], []),
    ],
)
def test_what_is_removed_is_said(cache: Cache, words: list[str], left: list[str]) -> None:
    done = CliRunner().invoke(main, ["cache", "--cache-dir", str(cache.root), *words])
    assert done.exit_code == 0, done.output
    assert [kept.key for kept in cache.environments()] == left
    removed = {"old", "new"} - set(left)
    assert {key for key in ("old", "new") if f"removed the environment {key}" in done.output} == removed
