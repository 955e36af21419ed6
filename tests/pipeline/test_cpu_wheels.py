"""Wheels for the CPU on a machine without a GPU, from real indexes on disk and the loopback."""

from __future__ import annotations

import socket
import sys
import time
from pathlib import Path

import pytest
from answer_table import Table
from table_run import Run
from wheel_tree import WheelTree, with_requirements

from torchbisect.containers.index.cpu_index import answers
from torchbisect.containers.index.indexes import Indexes
from torchbisect.pipeline.build_sources import LocalBuildSources
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.progress import Display

CUDA = "__version__ = {0!r}\n\n\nclass version:\n    git_version = 'c0ffee'\n    cuda = '12.8'\n"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WheelTree:
    """An index with a release for both, one for CUDA and one for the CPU; no GPU is there."""
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_FIND_LINKS", "PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    made = with_requirements(WheelTree(tmp_path / "index"))
    for version in ("2.6.0+cpu", "2.7.0", "2.8.0", "2.8.0+cpu"):
        made.add("torch", version, source=None if version.endswith("cpu") else CUDA.format(version))
    return made


def sources(tree: WheelTree, tmp_path: Path, **options: object) -> LocalBuildSources:
    given = {"index_url": tree.url, "python": sys.executable, "cache_dir": tmp_path / "cache", **options}
    return LocalBuildSources(Options(Path("repro.py"), **given), Display(-1))  # type: ignore[arg-type]


def versions(found: LocalBuildSources) -> list[str]:
    return [build.version for build in found.releases.builds]


@pytest.mark.slow
def test_wheels_for_the_cpu_are_taken_where_the_index_has_them(tree: WheelTree, tmp_path: Path) -> None:
    found = sources(tree, tmp_path)
    assert versions(found) == ["2.6.0+cpu", "2.7.0", "2.8.0+cpu"]
    assert [build.name for build in found.releases.builds] == ["2.6.0", "2.7.0", "2.8.0"]
    other = found.releases.cuda["2.8.0+cpu"]
    assert other.version == "2.8.0"
    assert str(other.wheel).endswith("/torch-2.8.0-py3-none-any.whl")
    assert list(found.releases.cuda) == ["2.8.0+cpu"]


@pytest.mark.slow
@pytest.mark.parametrize("named", [{"torch": "2.8.0+cu128"}, {"device": "cuda"}])
def test_a_named_variant_or_device_decides(named: dict[str, str], tree: WheelTree, tmp_path: Path) -> None:
    assert versions(sources(tree, tmp_path, **named)) == ["2.6.0", "2.7.0", "2.8.0"]


@pytest.mark.slow
def test_a_gpu_decides(tree: WheelTree, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "nvidia-smi"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'NVIDIA H100, 580.65.6, 9.0'\n")
    program.chmod(0o755)
    assert versions(sources(tree, tmp_path)) == ["2.6.0", "2.7.0", "2.8.0"]


@pytest.mark.torch
def test_the_wheel_that_was_taken_is_installed(tree: WheelTree, tmp_path: Path) -> None:
    found = sources(tree, tmp_path)
    try:
        for build in (*found.releases.builds, found.releases.cuda["2.8.0+cpu"]):
            facts = found.maker(build).environment(build).facts
            assert (facts.torch, facts.cuda) == (build.version, None if build.version.endswith("cpu") else "12.8")
    finally:
        found.close()


@pytest.mark.slow
def test_a_configured_index_is_used_alone(tree: WheelTree, tmp_path: Path) -> None:
    assert sources(tree, tmp_path)._release_indexes == Indexes(tree.url)


@pytest.mark.slow
def test_an_index_that_does_not_answer_is_left_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        begun = time.monotonic()
        assert not answers(f"http://127.0.0.1:{silent.getsockname()[1]}", 0.3)
        assert time.monotonic() - begun < 2
    assert not answers("http://name.invalid", 0.3)


def test_wheels_of_two_kinds_at_a_boundary_are_compared(run: Run) -> None:
    wrong: dict[str, list[str]] = {"2.6.0": [], "2.7.0": [], "2.8.0": ["one"]}
    both = run(Table(wrong, variants={"2.6.0": "cu126", "2.7.0": "cu126", "2.8.0": "cpu cu128"}), minimize=False)
    said = "\n".join(both.report["bisect"]["notices"])
    assert "torch 2.7.0 was asked with a wheel for CUDA, because the indexes have none for the CPU" in said
    assert "torch 2.8.0 is bad with a wheel for CUDA too" in said


def test_wheels_of_two_kinds_that_cannot_be_compared_are_named(run: Run) -> None:
    wrong: dict[str, list[str]] = {"2.6.0": [], "2.7.0": [], "2.8.0": ["one"]}
    one = run(Table(wrong, variants={"2.6.0": "cpu", "2.7.0": "cu126", "2.8.0": "cpu"}), minimize=False)
    assert "and torch 2.8.0 with one for the CPU" in "\n".join(one.report["bisect"]["notices"])


def test_wheels_of_one_kind_need_no_remark(run: Run) -> None:
    wrong: dict[str, list[str]] = {"2.6.0": [], "2.7.0": [], "2.8.0": ["one"]}
    same = run(Table(wrong, variants=dict.fromkeys(wrong, "cpu")), minimize=False)
    assert not any("wheel" in line for line in same.report["bisect"]["notices"])
