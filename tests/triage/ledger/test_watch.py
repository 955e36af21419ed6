"""The loop of the watch against random truth tables: it finds what is true, asks nothing twice, and survives kills."""

from __future__ import annotations

import io
import tempfile
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from torchbisect.bisect.search.evidence import BoundaryKind, BuildAnswer, BuildStatus
from torchbisect.bisect.search.find import find_boundaries
from torchbisect.bisect.search.search_options import SearchOptions
from torchbisect.core.build import Build
from torchbisect.minimizer.budget import Budget
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.progress import Display
from torchbisect.triage.database import Database
from torchbisect.triage.jobs import TaskResult
from torchbisect.triage.ledger.bug import AskedScript, KnownBug
from torchbisect.triage.ledger.page import History
from torchbisect.triage.ledger.questions import Asks, Heard, WatchTask
from torchbisect.triage.ledger.state import Edge, Seen, Standing, State
from torchbisect.triage.ledger.store import Ledger, WatchedBug
from torchbisect.triage.ledger.watch import Context, Watch

BUILDS = ("2.6.0", "2.7.0", "2.7.1", "2.8.0", "2.9.0", "2.9.1", "2.10.0", "2.11.0")
#: The builds that are watched; the others lie between them.
WATCHED = ("2.6.0", "2.7.1", "2.9.1", "2.10.0", "2.11.0")
#: A folder in memory where there is one: SQLite waits for the disk after every answer.
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None


class Killed(Exception):
    """The end of the process."""


@dataclass
class World:
    """The truth, and a record of the questions.

    Attributes:
        shows: for each bug whether each of ``BUILDS`` shows it.
        broken: builds whose health check fails.
        dies_at: the question after which the process is killed; ``None`` for never.
    """

    shows: Mapping[str, Sequence[bool]]
    broken: frozenset[str] = frozenset()
    dies_at: int | None = None
    asked: list[tuple[Asks, str, str]] = field(default_factory=list)

    def is_bad(self, bug: str, build: str) -> bool:
        return self.shows[bug][BUILDS.index(build)]

    def execute(self, tasks: Sequence[WatchTask]) -> Generator[TaskResult]:
        for task in tasks:
            if self.dies_at is not None and len(self.asked) >= self.dies_at:
                raise Killed
            # As between two processes: only what JSON can hold gets across.
            task = WatchTask.from_json(task.to_json())
            self.asked.append((task.asks, task.name, task.build))
            yield TaskResult.from_json(TaskResult(task.name, answer=self._answer(task).to_json()).to_json())

    def _answer(self, task: WatchTask) -> Heard:
        if task.asks is Asks.HEALTH:
            broken = task.build in self.broken
            return Heard(Seen.UNTESTABLE if broken else Seen.NONE, "no compiler" if broken else "", healthy=not broken)
        if task.asks is Asks.EDGE:
            assert task.edge is not None
            return self._narrowed(task.name, task.edge)
        return Heard(Seen.SAME if self.is_bad(task.name, task.build) else Seen.NONE, "seen")

    def _narrowed(self, bug: str, edge: Edge) -> Heard:
        fix = edge.kind is BoundaryKind.FIX
        before, after = BUILDS.index(edge.before), BUILDS.index(edge.after)
        found = find_boundaries(
            BUILDS,
            lambda build: BuildAnswer(BuildStatus.BAD if self.is_bad(bug, build) else BuildStatus.GOOD),
            SearchOptions(bad=before if fix else after, good=after if fix else before, kind=edge.kind),
        )
        boundary = found.boundary(edge.kind)
        assert boundary is not None
        assert boundary.before is not None
        assert boundary.after is not None
        tested = tuple((asked.item, str(asked.status), "") for asked in found.tested)
        return Heard(Seen.NONE, edge=Edge(edge.kind, boundary.before, boundary.after, True, True), tested=tested)


def watch(world: World, path: Path, builds: Sequence[str], budget: Budget | None = None) -> Watch:
    with Database(path) as database:
        options = Options(Path(), out=path.parent)
        context = Context(Ledger(database), options, Display(-1, io.StringIO()), world.execute, budget or Budget())
        found = Watch(context)
        found.ask([Build(name) for name in builds])
        return found


def known(path: Path) -> dict[str, WatchedBug]:
    with Database(path) as database:
        return {one.bug.name: one for one in Ledger(database).bugs()}


def add(path: Path, bugs: Sequence[str]) -> None:
    with Database(path) as database:
        script = AskedScript("minimal", "print(1)\n", {"kind": "values"}, {})
        reported = Standing(State.REPRODUCES, "wrong", "2.6.0", "2.6.0")
        Ledger(database).put_bugs(WatchedBug(KnownBug(name, scripts=(script,)), reported) for name in bugs)


# Every bug was reported on 2.6.0, and shows there.
histories = st.lists(st.booleans(), min_size=7, max_size=7).map(lambda rest: (True, *rest))
worlds = st.dictionaries(st.sampled_from("abcd"), histories, min_size=1)


def expected_state(shows: Sequence[bool], builds: Sequence[str]) -> State:
    """The state after asking builds in order, from the truth alone."""
    answers = [shows[BUILDS.index(build)] for build in builds]
    if not answers[-1]:
        return State.FIXED
    return State.REPRODUCES if all(answers) else State.REGRESSED


@given(worlds)
def test_each_state_and_each_edge_is_that_of_the_truth(shows: dict[str, tuple[bool, ...]]) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        path = Path(folder) / "t.sqlite"
        add(path, list(shows))
        for count in range(1, len(WATCHED) + 1):
            world = World(shows)
            watch(world, path, [WATCHED[count - 1]])
            for name, one in known(path).items():
                assert one.standing.state is expected_state(shows[name], WATCHED[:count])
                edge = one.standing.edge
                if edge is not None:
                    fix = edge.kind is BoundaryKind.FIX
                    assert (world.is_bad(name, edge.before), world.is_bad(name, edge.after)) == (fix, not fix)
                    assert BUILDS.index(edge.after) == BUILDS.index(edge.before) + 1


@given(worlds)
def test_several_builds_in_one_run_find_the_edges_on_the_way_too(shows: dict[str, tuple[bool, ...]]) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        path, other = Path(folder) / "t.sqlite", Path(folder) / "other.sqlite"
        for place in (path, other):
            add(place, list(shows))
        watch(World(shows), path, WATCHED)
        for build in WATCHED:
            watch(World(shows), other, [build])
        with Database(path) as one, Database(other) as two:
            said = [[(c.bug, c.build, c.after, c.words) for c in Ledger(db).changes()] for db in (one, two)]
        assert said[0] == said[1]


@given(worlds, st.integers(0, 60))
def test_a_kill_loses_nothing_and_a_second_run_asks_nothing(shows: dict[str, tuple[bool, ...]], dies: int) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        path, other = Path(folder) / "t.sqlite", Path(folder) / "other.sqlite"
        for place in (path, other):
            add(place, list(shows))
        killed, whole = World(shows, dies_at=dies), World(shows)
        try:
            watch(killed, path, WATCHED)
        except Killed:
            killed.dies_at = None
            watch(killed, path, WATCHED)
        watch(whole, other, WATCHED)
        assert {name: one.standing for name, one in known(path).items()} == {
            name: one.standing for name, one in known(other).items()
        }
        assert max(Counter(killed.asked).values()) == 1, "a question was asked twice"
        before = len(killed.asked)
        assert watch(killed, path, WATCHED).asked == 0
        assert len(killed.asked) == before
        with Database(path) as one, Database(other) as two:
            said = [[(c.bug, c.build, c.before, c.after) for c in Ledger(db).changes()] for db in (one, two)]
            assert sorted(said[0]) == sorted(said[1])
            assert History.of(Ledger(one)).last_changes == Ledger(one).changes(), "a kill hides what has changed"


@given(worlds, st.sampled_from(WATCHED[1:]))
def test_a_broken_build_changes_no_state(shows: dict[str, tuple[bool, ...]], broken: str) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        path = Path(folder) / "t.sqlite"
        add(path, list(shows))
        watch(World(shows), path, WATCHED[: WATCHED.index(broken)])
        before = known(path)
        # On the broken build nothing shows, as where torch.compile does nothing.
        hidden = {
            name: tuple(is_bad and build != broken for is_bad, build in zip(row, BUILDS)) for name, row in shows.items()
        }
        world = World(hidden, frozenset({broken}))
        watch(world, path, [broken])
        assert known(path) == before
        assert [kind for kind, _, build in world.asked if build == broken] == [Asks.HEALTH]
        asked = len(world.asked)
        watch(world, path, [broken])
        assert len(world.asked) == asked, "a broken build was asked again"


@given(worlds, st.integers(1, 4))
def test_a_budget_ends_a_run_and_the_next_goes_on(shows: dict[str, tuple[bool, ...]], most: int) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        path, other = Path(folder) / "t.sqlite", Path(folder) / "other.sqlite"
        for place in (path, other):
            add(place, list(shows))
        world, runs = World(shows), 0
        while (run := watch(world, path, WATCHED, Budget(questions=most))).unfinished:
            assert run.asked <= most
            runs += 1
            assert runs < 200
        watch(World(shows), other, WATCHED)
        found, whole = known(path), known(other)
        assert {name: one.standing for name, one in found.items()} == {
            name: one.standing for name, one in whole.items()
        }
        assert max(Counter(world.asked).values()) == 1


def test_a_changed_script_is_asked_anew(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    add(path, ["a"])
    world = World({"a": (True,) * 8})
    watch(world, path, ["2.8.0"])
    one = known(path)["a"]
    script = replace(one.bug.scripts[0], source="print(2)\n")
    with Database(path) as database:
        Ledger(database).put_bugs([replace(one, bug=replace(one.bug, scripts=(script,)))])
    watch(world, path, ["2.8.0"])
    assert [asked for asked in world.asked if asked[0] is Asks.BUG] == [(Asks.BUG, "a", "2.8.0")] * 2


def test_what_this_machine_could_not_ask_is_left_for_the_next_run(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    add(path, ["a", "b"])
    world = World({"a": (True,) * 8, "b": (True,) * 8})

    def fails_for_a(tasks: Sequence[WatchTask]) -> Generator[TaskResult]:
        for task, result in zip(tasks, world.execute(tasks)):
            yield TaskResult(task.name, problem="the disk is full", retry=True) if task.name == "a" else result

    with Database(path) as database:
        options = Options(Path(), out=tmp_path)
        run = Watch(Context(Ledger(database), options, Display(-1, io.StringIO()), fails_for_a, Budget()))
        run.ask([Build("2.8.0")])
        assert run.unfinished == ["a: the disk is full"]
        assert [answer.bug for answer in Ledger(database).answers()] == ["b"]
    assert watch(world, path, ["2.8.0"]).asked == 1
