"""The library's search over sixty nightlies made from the installed torch."""

from __future__ import annotations

import math
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import nightly_index
import psutil
import pytest

from torchbisect.bisect.search.evidence import BoundaryKind, BuildAnswer, BuildStatus, SearchResult
from torchbisect.bisect.search.find import find_boundaries
from torchbisect.bisect.search.search_options import SearchOptions
from torchbisect.bisect.sources.nightly import nightlies
from torchbisect.containers.environment import Venv
from torchbisect.containers.index.indexes import Indexes
from torchbisect.containers.index.pages import project_page
from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.containers.store.cache import Cache
from torchbisect.containers.store.removal import remove_tree
from torchbisect.containers.venv.environments import VenvEnvironments
from torchbisect.core.build import Build
from torchbisect.core.errors import InstallFailed
from torchbisect.core.repro import Repro
from torchbisect.probe.agent_client import AgentFailed
from torchbisect.probe.journal import Journal
from torchbisect.probe.judge.matching import Strictness
from torchbisect.probe.judge.signature import Signature
from torchbisect.probe.oracle import Question
from torchbisect.probe.probe import Probe

pytestmark = pytest.mark.long

#: The first date with the dynamo bug; the date before it can't be imported.
DYNAMO_DATE = 37
DECOMPOSITION_DATE = 33


@dataclass
class SearchFixture:
    """The index, the environments and the journal of a run."""

    index: Any
    builds: list[Build]
    venvs: VenvEnvironments
    journal: Journal
    scripts: ModuleType
    asked: int = 0
    signatures: dict[str, Signature] = field(default_factory=dict)
    known: dict[tuple[str, Build], BuildAnswer] = field(default_factory=dict)

    def number(self, build: Build) -> int:
        return next(n for n in range(self.index.count) if self.index.version(n) == build.version)

    def signature(self, script: str) -> Signature:
        """Return the signature of a script's mismatch on the newest date."""
        if script not in self.signatures:
            with Probe(self.venvs.environment(self.builds[-1]), self.journal) as probe:
                for each in self.scripts.SCRIPTS:
                    mismatch = probe.mismatch(Repro(each))
                    assert mismatch is not None
                    self.signatures[each] = mismatch.signature
        return self.signatures[script]

    def ask(self, environment: Venv, *scripts: str) -> list[BuildAnswer]:
        """Ask an environment about each script, with one agent for all."""
        with Probe(environment, self.journal) as probe:
            try:
                asked = [
                    probe.ask(Question(Repro(script), self.signature(script), strictness=Strictness.TOLERANT))
                    for script in scripts
                ]
                return [BuildAnswer.from_verdict(verdict) for verdict in asked]
            except AgentFailed as failed:
                return [BuildAnswer(BuildStatus.UNTESTABLE, "broken-environment", str(failed))] * len(scripts)
            finally:
                self.asked += probe.asked

    def search(self, script: str) -> SearchResult[Build]:
        scripts = self.scripts.SCRIPTS

        def ask(build: Build) -> BuildAnswer:
            try:
                found = self.ask(self.venvs.environment(build), *scripts)
            except InstallFailed as failed:
                found = [BuildAnswer(BuildStatus.UNTESTABLE, failed.reason, str(failed))] * len(scripts)
            self.known.update({(each, build): answer for each, answer in zip(scripts, found)})
            return self.known[script, build]

        return find_boundaries(
            self.builds,
            ask,
            SearchOptions(
                good=0,
                bad=len(self.builds) - 1,
                kind=BoundaryKind.REGRESSION,
                cached=self.venvs.has,
                rank=lambda build: build.date.toordinal() if build.date else 0,
            ),
            known=lambda build: self.known.get((script, build)),
        )


def memory_folder(prefix: str) -> Path | None:
    """Make a folder on a memory disk, if it has room: writing a hundred thousand files is quick there."""
    shared = Path("/dev/shm")
    plenty = shared.is_dir() and shutil.disk_usage(shared).free > 6e9 and psutil.virtual_memory().available > 10e9
    return Path(tempfile.mkdtemp(prefix=prefix, dir=shared)) if plenty else None


@pytest.fixture(scope="module")
def fixture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SearchFixture]:
    interpreter = Interpreter.of(sys.executable)
    index = nightly_index.NightlyIndex(
        changes={nightly_index.DYNAMO: (DYNAMO_DATE, 60), nightly_index.DECOMPOSITION: (DECOMPOSITION_DATE, 60)},
        missing=frozenset({4, 20, 21, 39, 50}),
        broken=frozenset({DYNAMO_DATE - 1}),
        busy={DYNAMO_DATE: 1},
        short={DECOMPOSITION_DATE - 1: 1},
    )
    url = index.start()
    own = Indexes.from_configuration()
    indexes = Indexes(own.index_url, (url, *own.extra_index_urls), own.find_links)
    place = memory_folder("torchbisect-tests-") or tmp_path_factory.mktemp("cache")
    cache = Cache(place)
    venvs = VenvEnvironments(cache, interpreter, indexes, notify=print)
    page = project_page(url.removesuffix("/torch"), "torch")
    assert page is not None
    listing = nightlies(page.packages, interpreter)
    yield SearchFixture(index, list(listing.builds), venvs, Journal(), nightly_index)
    venvs.close()
    index.stop()
    remove_tree(cache.root)  # gigabytes, which pytest would keep for three runs


def test_the_first_bad_dates_are_found_despite_missing_broken_and_interrupted_wheels(fixture: SearchFixture) -> None:
    assert len(fixture.builds) == 55
    found = fixture.search(fixture.scripts.DYNAMO_SCRIPT)
    boundary = found.regression
    assert boundary is not None
    assert boundary.last_good is not None
    assert boundary.first_bad is not None
    assert (fixture.number(boundary.last_good), fixture.number(boundary.first_bad)) == (DYNAMO_DATE - 2, DYNAMO_DATE)
    assert [(fixture.number(skipped.item), skipped.reason) for skipped in boundary.between] == [
        (DYNAMO_DATE - 1, "import-failed")
    ]
    assert not boundary.exact
    assert len(found.tested) <= 2 + math.ceil(math.log2(60)) + 3

    found = fixture.search(fixture.scripts.DECOMPOSITION_SCRIPT)
    boundary = found.regression
    assert boundary is not None
    assert boundary.first_bad is not None
    assert fixture.number(boundary.first_bad) == DECOMPOSITION_DATE
    assert boundary.exact
    fetched = [path for path in fixture.index.served if path.endswith(".whl") and "/torch-2" in path]
    assert len(fetched) <= 2 + math.ceil(math.log2(60)) + 3 + 3, "the second search meets the first one's environments"


def test_the_same_search_again_asks_and_fetches_nothing(fixture: SearchFixture) -> None:
    asked, served = fixture.asked, sum(fixture.index.served.values())
    found = fixture.search(fixture.scripts.DECOMPOSITION_SCRIPT)
    assert found.regression is not None
    assert fixture.asked == asked
    assert sum(fixture.index.served.values()) == served
