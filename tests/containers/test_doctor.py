"""Checks of ``doctor`` on the machine that runs the tests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from torchbisect.containers import doctor
from torchbisect.containers.index.indexes import Indexes
from torchbisect.containers.store.cache import VARIABLE


def test_every_check_runs_and_each_failure_has_advice(
    tree: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree.add("torch", "2.8.0")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    found = doctor.run_checks(sys.executable, cache=tmp_path, indexes=Indexes(tree.url))
    names = ["python", "uv", "C++ compiler", "disk", "memory", "limits", "index", "GPU", "docker"]
    assert [check.name for check in found] == names
    assert all(check.detail for check in found)
    assert all(check.advice for check in found if not check.ok)
    assert "\n" not in "".join(check.detail + check.advice for check in found)
    docker = found[-1]
    assert docker.ok
    assert "dockerd" in docker.advice


def test_the_disk_is_that_of_the_cache(tree: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "system"))
    monkeypatch.delenv(VARIABLE, raising=False)

    def checked(cache: Path | None = None) -> str:
        found = doctor.run_checks(sys.executable, cache=cache, indexes=Indexes(tree.url))
        return next(check.detail for check in found if check.name == "disk")

    assert f"free for {tmp_path}/system/torchbisect;" in checked()
    monkeypatch.setenv(VARIABLE, str(tmp_path / "named"))
    assert f"free for {tmp_path}/named;" in checked()
    assert f"free for {tmp_path}/typed;" in checked(tmp_path / "typed")
    assert not list(tmp_path.glob("[nst]*"))


def test_a_machine_that_lacks_requirements(tree: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    assert not doctor.compiler_check().ok
    assert not doctor.python_check(tmp_path / "none").ok
    assert not doctor.index_check(Indexes(tree.url)).ok
    assert not doctor.index_check(Indexes("http://127.0.0.1:9/simple")).ok


def test_a_compiler_named_by_cxx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "c++-of-mine"
    program.write_text("#!/bin/sh\necho mine 1.0\n")
    program.chmod(0o755)
    monkeypatch.setenv("CXX", str(program))
    assert "mine 1.0" in doctor.compiler_check().detail
