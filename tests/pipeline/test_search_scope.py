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
    assert failing_build(options(), sources) == Build("2.8.1")


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
