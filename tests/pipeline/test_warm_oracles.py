"""The oracles of builds that were asked, and of builds that may be asked."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from answer_table import Table, TableProvider, build_of
from hypothesis import given
from hypothesis import strategies as st

from torchbisect.core.build import Build
from torchbisect.core.errors import InstallFailed
from torchbisect.pipeline.warm_oracles import MOST_IDLE, WarmOracles
from torchbisect.probe.journal import Journal
from torchbisect.probe.oracle import Oracle

RELEASES = {f"2.{minor}.0": ["one"] for minor in range(MOST_IDLE + 3)}
NAMES = st.sampled_from(sorted(RELEASES))


@dataclass(frozen=True)
class Opener:
    """Opens the oracles of a table, and counts them."""

    table: Table
    count: Counter[str]
    warm: WarmOracles

    @property
    def leased(self) -> int:
        """The number of environments that can't be removed now."""
        return sum(self.table.leases.values())


@pytest.fixture
def open_warm(tmp_path: Path) -> Callable[..., Opener]:
    def make(**table: object) -> Opener:
        return opener(tmp_path, **table)

    return make


def opener(folder: Path, **table: object) -> Opener:
    """Return an opener for a new table."""
    answers = Table(RELEASES, **table)  # type: ignore[arg-type]
    provider = TableProvider(answers, folder / "cache")
    count: Counter[str] = Counter()

    def opened(build: Build) -> AbstractContextManager[Oracle]:
        @contextmanager
        def lent() -> Iterator[Oracle]:
            with (
                provider.environment(build) as environment,
                provider.oracle(environment, Journal(), print) as oracle,
            ):
                count[build.name] += 1
                yield oracle

        return lent()

    return Opener(answers, count, WarmOracles(opened))


def test_the_next_question_gets_the_oracle_of_the_last_one(open_warm: Callable[..., Opener]) -> None:
    opener = open_warm()
    for name in ("2.7.0", "2.8.0", "2.7.0"):
        with opener.warm.lend(build_of(name)) as oracle:
            assert oracle.environment.build.name == name
    assert opener.count == {"2.7.0": 1, "2.8.0": 1}
    opener.warm.close()
    assert not opener.leased


def test_a_prepared_oracle_is_the_one_that_is_lent(open_warm: Callable[..., Opener]) -> None:
    opener = open_warm()
    opener.warm.prepare(build_of("2.7.0"))
    opener.warm.prepare(build_of("2.7.0"))
    with opener.warm.lend(build_of("2.7.0")):
        pass
    assert opener.count == {"2.7.0": 1}


def test_a_build_that_cannot_be_installed_says_so_to_the_question_only(open_warm: Callable[..., Opener]) -> None:
    opener = open_warm(refused={"2.7.0": "no-wheel"})
    opener.warm.prepare(build_of("2.7.0"))
    with pytest.raises(InstallFailed), opener.warm.lend(build_of("2.7.0")):
        pass
    assert not opener.leased


def test_an_oracle_whose_question_failed_is_not_kept(open_warm: Callable[..., Opener]) -> None:
    opener = open_warm()
    with pytest.raises(ZeroDivisionError), opener.warm.lend(build_of("2.7.0")):
        raise ZeroDivisionError
    assert not opener.leased


def test_only_the_questions_that_are_asked_now_are_ended(
    open_warm: Callable[..., Opener], monkeypatch: pytest.MonkeyPatch
) -> None:
    opener, closed = open_warm(), list[str]()
    with opener.warm.lend(build_of("2.6.0")):
        pass
    with opener.warm.lend(build_of("2.7.0")) as oracle:
        monkeypatch.setattr(type(oracle), "close", lambda one: closed.append(one.environment.build.name))
        opener.warm.end_questions()
    opener.warm.end_questions()
    assert closed == ["2.7.0"]
    opener.warm.close()


@given(st.lists(st.tuples(st.booleans(), NAMES), max_size=12))
def test_no_more_than_that_many_wait(tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[bool, str]]) -> None:
    opened = opener(tmp_path_factory.mktemp("warm"))
    for prepared, name in steps:
        if prepared:
            opened.warm.prepare(build_of(name))
        else:
            with opened.warm.lend(build_of(name)):
                assert opened.leased <= MOST_IDLE + 1
        assert opened.leased <= MOST_IDLE
    opened.warm.close()
    assert not opened.leased


def test_questions_about_one_build_at_the_same_time(open_warm: Callable[..., Opener]) -> None:
    opener = open_warm()
    together = threading.Barrier(4)

    def ask() -> None:
        with opener.warm.lend(build_of("2.7.0")):
            together.wait(10)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (opener.count["2.7.0"], opener.leased) == (4, 1)
    opener.warm.close()
    assert not opener.leased
