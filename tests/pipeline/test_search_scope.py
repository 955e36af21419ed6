"""The builds that a user names, and the range that is searched first."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from answer_table import Table, TableSources, build_of

from torchbisect.bisect.search.evidence import BoundaryKind
from torchbisect.containers.store.cache import Cache
from torchbisect.core.build import Build, Channel
from torchbisect.core.errors import InputError, MachineError
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.search_plan import plan_searches
from torchbisect.pipeline.search_scope import failing_build, first_scope, named_build

NIGHTLIES = ("2.9.0.dev20250701", "2.9.0.dev20250704", "2.9.0.dev20250709")
RELEASES = ("2.6.0", "2.7.0", "2.8.0", "2.8.1")


@pytest.fixture
def sources(tmp_path: Path) -> TableSources:
    """Four releases and three nightlies, and a Python without torch."""
    return TableSources(Table({name: [] for name in (*RELEASES, *NIGHTLIES)}), Cache(tmp_path))


def with_torch(sources: TableSources, version: str | None) -> TableSources:
    """Return the same builds for a Python with another torch beside it."""
    return dataclasses.replace(sources, interpreter=dataclasses.replace(sources.interpreter, installed_torch=version))


def options(**typed: object) -> Options:
    """Return options with these values."""
    return dataclasses.replace(Options(Path("repro.py")), **typed)  # type: ignore[arg-type]


def test_the_failing_build_is_the_named_one_else_the_installed_one_else_the_newest(sources: TableSources) -> None:
    assert failing_build(options(torch="2.7.0", bad="2.8.0"), sources) == Build("2.7.0")
    assert failing_build(options(bad="2.8.0"), sources) == Build("2.8.0")
    installed = Build("2.8.0+cpu", Channel.INSTALLED)
    assert failing_build(options(), with_torch(sources, "2.8.0+cpu")) == installed
    assert failing_build(options(torch="installed"), with_torch(sources, "2.8.0+cpu")) == installed
    said: list[str] = []
    assert failing_build(options(), sources, said.append) == Build("2.8.1")
    assert said == [
        "no --torch is named and this Python has none: torch 2.8.1, the newest release, is installed and run"
    ]


def test_an_installed_torch_that_does_not_exist(sources: TableSources) -> None:
    with pytest.raises(InputError, match=r"has no torch; name a build, such as --torch 2\.8\.1"):
        failing_build(options(torch="installed"), sources)


def test_an_index_without_builds(tmp_path: Path) -> None:
    class Empty(TableSources):
        indexes = "the index"  # type: ignore[assignment]

    with pytest.raises(MachineError, match="name another --python"):
        failing_build(options(), Empty(Table({}), Cache(tmp_path)))


def test_a_nightly_is_named_by_its_date(sources: TableSources) -> None:
    assert named_build(options(), sources, "2025-07-04") == build_of("2.9.0.dev20250704")
    with pytest.raises(InputError, match="2025-07-05"):
        named_build(options(), sources, "2025-07-05")


def test_the_first_scope_has_all_releases(sources: TableSources) -> None:
    scope = first_scope(options(good="2.6.0", find="regression"), sources, Build("2.8.0"))
    assert scope.channel is Channel.RELEASE
    assert [str(build) for build in scope.listing.builds] == list(RELEASES)
    assert (scope.good, scope.bad, scope.kind) == (0, 2, BoundaryKind.REGRESSION)


def test_an_installed_build_stands_at_its_release_or_the_newest_before_it(sources: TableSources) -> None:
    for version, position in (("2.7.0+cu126", 1), ("2.7.5", 1), ("2.10.0a0+git123", 3)):
        assert first_scope(options(), sources, Build(version, Channel.INSTALLED)).bad == position


def test_only_nightlies_where_only_those_are_asked_for(sources: TableSources) -> None:
    scope = first_scope(options(channels=("nightly",)), sources, build_of(NIGHTLIES[-1]))
    assert scope.channel is Channel.NIGHTLY
    assert [str(build) for build in scope.listing.builds] == list(NIGHTLIES)


def test_a_build_of_another_channel_is_refused(sources: TableSources) -> None:
    with pytest.raises(InputError, match="isn't among the builds"):
        first_scope(options(), sources, build_of(NIGHTLIES[0]))


def test_a_plan_has_one_search_for_each_channel(tmp_path: Path) -> None:
    class Indexed(TableSources):
        class indexes:  # type: ignore[override]
            index_url = "https://index.invalid/simple"

    sources = Indexed(Table({name: [] for name in RELEASES}), Cache(tmp_path))
    assert list(plan_searches(options(torch="2.8.0"), sources)) == [Channel.RELEASE, Channel.NIGHTLY]
    assert list(plan_searches(options(torch="2.8.0", channels=("release",)), sources)) == [Channel.RELEASE]
    assert sources.table.asked == []


@pytest.mark.parametrize(
    ("torch", "run", "reason"),
    [
        ("2.8.0", "2.8.0", None),
        ("2.8.0+cu128", "2.8.0", "does not offer that variant"),
        ("2.9.0.dev20250704+cu128", "2.9.0.dev20250704", "variant"),
        ("2.9.0.dev20250705", "2.9.0.dev20250704", "that nightly is gone"),
        ("2025-07-11", "2.9.0.dev20250709", "that nightly is gone"),
        ("2.6.0.dev20241218+cu126", "2.6.0", "that nightly is gone"),
        ("2.7.0a0+git1234abc", "2.7.0", "build from source"),
        ("2.8.0rc3", "2.8.0", "release candidate"),
        ("2.4.1", "2.6.0", "no such release"),
        ("3.0.0", "2.8.1", "no such release"),
        ("main@abc1234", "2.9.0.dev20250709", "commit of the main branch"),
        ("nightly", "2.9.0.dev20250709", "neither a version nor a day"),
    ],
)
def test_the_nearest_build_is_run_and_that_is_said(
    torch: str, run: str, reason: str | None, sources: TableSources
) -> None:
    said: list[str] = []
    assert failing_build(options(torch=torch, nearest=True), sources, said.append).name == run
    assert len(said) == (0 if reason is None else 1)
    assert all(reason in text and f"torch {torch} is asked for" in text for text in said if reason)


def test_another_build_is_taken_only_if_that_was_asked_for(sources: TableSources) -> None:
    with pytest.raises(InputError, match="no torch"):
        failing_build(options(torch="2.7.0a0+git1234abc"), sources)
    said: list[str] = []
    assert failing_build(options(torch="2.8.0+cu128", variant="cpu"), sources, said.append) == Build("2.8.0")
    assert said == ["torch 2.8.0+cu128 is asked for; the variant is cpu; 2.8.0 is run"]
