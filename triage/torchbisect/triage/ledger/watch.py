"""Ask every known bug on one build after another; each answer is stored before the next question is asked."""

from __future__ import annotations

import datetime
import re
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from torchbisect.bisect.search.evidence import BuildStatus
from torchbisect.core.build import Build, Channel
from torchbisect.core.decode import DecodeError
from torchbisect.core.errors import MachineError
from torchbisect.core.printable import one_line
from torchbisect.core.repro import fingerprint
from torchbisect.minimizer.budget import Budget
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.progress import Display
from torchbisect.triage.jobs import TaskResult
from torchbisect.triage.ledger.questions import Asks, Heard, WatchTask
from torchbisect.triage.ledger.state import (
    Control,
    Seen,
    Sighting,
    Standing,
    State,
    aged,
    needs_control,
    step,
    with_edge,
)
from torchbisect.triage.ledger.store import AskedBuild, Change, Ledger, Run, StoredAnswer, WatchedBug

Execute = Callable[[Sequence[WatchTask]], Generator[TaskResult]]

#: The folder of the bugs' logs and pages, beside the database.
BUGS = "bugs"


def bug_folder(name: str) -> str:
    """Return a readable folder name that is different for every bug."""
    return f"{re.sub(r'[^A-Za-z0-9.]+', '-', name).strip('-.')[-60:]}-{fingerprint(name)[:6]}"


@dataclass(frozen=True)
class Context:
    """The things that a watch works with.

    Attributes:
        options: the options of every question; ``out`` is the folder of the ledger.
        budget: the limits of the whole watch; questions are those to builds about bugs.
    """

    ledger: Ledger
    options: Options
    display: Display
    execute: Execute
    budget: Budget


class Watch:
    """One run of the watch.

    Attributes:
        asked: the questions that were answered in this run.
        touched: the names of the bugs whose history has grown.
        unfinished: the reasons why something is left for the next run of the same command.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._ledger = context.ledger
        self._began = time.monotonic()
        self._run: Run | None = None
        self.asked = 0
        self.touched: set[str] = set()
        self.unfinished: list[str] = []
        self._bugs = {one.bug.name: one for one in self._ledger.bugs()}

    def ask(self, builds: Iterable[Build]) -> None:
        """Ask all bugs on these builds, one build after the other, as far as the budget reaches."""
        ended = False
        try:
            # A newer build may bring another edge, so one that a killed run has left comes first.
            self._narrow_edges()
            for build in builds:
                if not self._over():
                    self._ask_build(build)
                    self._narrow_edges()
            self._age()
            ended = True
        finally:
            self._end(ended=ended)

    def _ask_build(self, build: Build) -> None:
        display = self._context.display
        asked = self._checked(build)
        if asked is None:
            return
        if not asked.healthy:
            display.warn(f"torch {build} fails its health check, so nothing is asked there: {asked.reason}")
            return
        known = {(one.bug, one.key): one for one in self._ledger.answers(build=build.name)}
        new = [one for one in self._bugs.values() if (one.bug.name, one.bug.key) not in known]
        display.line(f"torch {build}: {len(self._bugs)} bugs, {len(new)} to ask")
        for task, heard in self._results(self._tasks(Asks.BUG, build, new)):
            self._take_answer(build, task, heard)
        self._confirm(build)

    def _checked(self, build: Build) -> AskedBuild | None:
        """Return a build with its health check, from the ledger if it was asked before; ``None`` if it failed here."""
        known = {one.name: one for one in self._ledger.builds()}
        if build.name in known:
            return known[build.name]
        if not self._bugs:
            return None
        options = self._options(f"torch-{build.name}")
        for _, heard in self._results([WatchTask(f"torch {build}", Asks.HEALTH, _selector(build), options)]):
            asked = AskedBuild(build.name, build.channel.value, _today(), heard.healthy, heard.reason)
            self._ledger.put_build(asked)
            return asked
        return None

    def _tasks(self, asks: Asks, build: Build, bugs: Iterable[WatchedBug]) -> list[WatchTask]:
        tasks = []
        for one in bugs:
            good = one.standing.is_good_now
            expected = Seen.NONE if good else Seen.SAME
            options = self._options(bug_folder(one.bug.name))
            tasks.append(WatchTask(one.bug.name, asks, _selector(build), options, one.bug, expected))
        return tasks

    def _options(self, folder: str) -> Options:
        options = self._context.options
        return replace(options, out=options.out / BUGS / folder, torch=None, budget=None, as_json=False)

    def _take_answer(self, build: Build, task: WatchTask, heard: Heard) -> None:
        one = self._bugs[task.name]
        sighting = Sighting(build.name, _today(), heard.seen, heard.healthy, reason=heard.reason)
        answer = StoredAnswer(task.name, one.bug.key, sighting, heard.seconds)
        if heard.healthy and needs_control(one.standing, heard.seen, build.name):
            # The state waits for the control; a kill in between loses neither.
            self._ledger.put_answer(answer)
        else:
            self._count(one, answer)

    def _count(self, one: WatchedBug, answer: StoredAnswer) -> None:
        """Store an answer, with the bug's standing after it."""
        after = step(one.standing, answer.sighting)
        now, change = self._changed(one, after, answer.sighting.build)
        self._ledger.put_answer(replace(answer, counted=True), now, change)

    def _changed(self, one: WatchedBug, after: Standing, build: str) -> tuple[WatchedBug, Change | None]:
        before, now = one.standing, replace(one, standing=after)
        self._bugs[one.bug.name] = now
        self.touched.add(one.bug.name)
        if after.state is before.state and after.edge == before.edge:
            return now, None
        self._context.display.line(f"  {one_line(one.bug.name, 80)}: {before.state} -> {one_line(after.words, 200)}")
        run = self._running().number
        return now, Change(run, _now(), one.bug.name, build, before.state.value, after.state.value, after.words)

    def _confirm(self, build: Build) -> None:
        """Ask the last bad build of each bug that is not seen any more, in this same run."""
        waiting = {
            one.bug: one
            for one in self._ledger.answers(build=build.name)
            if not one.counted and one.bug in self._bugs and one.key == self._bugs[one.bug].bug.key
        }
        # The bugs of one last bad build follow each other, so that its agent stays warm.
        order = sorted(waiting, key=lambda name: self._bugs[name].standing.last_bad)
        tasks = []
        for name in order:
            one = self._bugs[name]
            options = self._options(bug_folder(name))
            tasks.append(WatchTask(name, Asks.CONTROL, one.standing.last_bad, options, one.bug))
        for task, heard in self._results(tasks):
            answer = waiting[task.name]
            sighting = replace(answer.sighting, control=_control(heard), control_reason=heard.reason)
            self._count(self._bugs[task.name], replace(answer, sighting=sighting))

    def _narrow_edges(self) -> None:
        """Search the builds between the two that were asked on both sides of each new edge."""
        tasks = []
        for name, one in self._bugs.items():
            edge = one.standing.edge
            if edge is not None and not edge.searched:
                options = self._options(bug_folder(name))
                tasks.append(WatchTask(name, Asks.EDGE, edge.after, options, one.bug, edge=edge))
        for task, heard in self._results(tasks):
            one = self._bugs[task.name]
            if heard.edge is None:
                continue
            for answer in self._searched(one, heard):
                self._ledger.put_answer(answer)
            self._ledger.put_standing(*self._changed(one, with_edge(one.standing, heard.edge), heard.edge.after))

    def _searched(self, one: WatchedBug, heard: Heard) -> list[StoredAnswer]:
        """Return the answers of the builds that a search asked; they are history."""
        seen = {BuildStatus.BAD: Seen.SAME, BuildStatus.GOOD: Seen.NONE}
        known = {answer.sighting.build for answer in self._ledger.answers(bug=one.bug.name)}
        return [
            StoredAnswer(
                one.bug.name,
                one.bug.key,
                Sighting(build, _today(), seen.get(BuildStatus(status), Seen.UNTESTABLE), reason=reason),
                counted=True,
            )
            for build, status, reason in {row[0]: row for row in heard.tested}.values()
            if build not in known
        ]

    def _age(self) -> None:
        for one in list(self._bugs.values()):
            after = aged(one.standing, _today())
            if after != one.standing:
                self._ledger.put_standing(*self._changed(one, after, ""))

    def _results(self, tasks: Sequence[WatchTask]) -> Generator[tuple[WatchTask, Heard]]:
        """Yield the answers to questions as they come, until the budget is over."""
        if not tasks or self._over():
            return
        self._running()
        by_name = {task.name: task for task in tasks}
        display = self._context.display
        with closing(self._context.execute(tasks)) as results:
            for number, result in enumerate(results, 1):
                task = by_name[result.name]
                heard = self._heard(task, result)
                if heard is not None:
                    self.asked += 1
                    said = f"{task.asks} {one_line(task.name, 80)} on torch {task.build}: {heard.seen}"
                    display.detail(f"{said} ({one_line(heard.reason, 160)})")
                    yield task, heard
                display.count(number, len(tasks))
                if number < len(tasks) and self._over():
                    return

    def _heard(self, task: WatchTask, result: TaskResult) -> Heard | None:
        """Return an answer; of a question that this machine could not ask, say why and leave it for the next run."""
        problem = result.problem
        if problem and not result.retry:
            edge = task.edge and replace(task.edge, searched=True, note=f"not narrowed: {problem}")
            return Heard(Seen.UNTESTABLE, problem, healthy=task.asks is not Asks.HEALTH, edge=edge)
        if not problem:
            try:
                return Heard.from_json(result.answer)
            except DecodeError as error:
                problem = f"its answer can't be read: {error}"
        self.unfinished.append(f"{one_line(result.name, 80)}: {problem}")
        self._context.display.warn(f"{one_line(result.name, 80)} was not asked: {one_line(problem, 300)}")
        return None

    def _over(self) -> bool:
        over = not self._context.budget.allows(self.asked, time.monotonic() - self._began)
        if over and not any("--budget" in reason for reason in self.unfinished):
            self.unfinished.append("the --budget is used up: the same command goes on")
            self._context.display.warn(self.unfinished[-1])
        return over

    def _running(self) -> Run:
        """Return this run; it begins with its first question."""
        if self._run is None:
            started = _now()
            self._run = Run(self._ledger.begin_run(started), started, "", 0, 0.0)
        return self._run

    def _end(self, *, ended: bool) -> None:
        """Store the figures of this run. What an interrupted one has changed is news still when the next one ends."""
        if self._run is not None:
            seconds = round(time.monotonic() - self._began, 1)
            finished = _now() if ended else ""
            self._ledger.end_run(replace(self._run, finished=finished, asked=self.asked, seconds=seconds))


def _control(heard: Heard) -> Control:
    if not heard.healthy or heard.seen is Seen.UNTESTABLE:
        return Control.UNTESTABLE
    return Control.SHOWN if heard.seen in (Seen.SAME, Seen.SOME) else Control.NOT_SHOWN


def _selector(build: Build) -> str:
    """Return the text that names a build on a command line."""
    return "installed" if build.channel is Channel.INSTALLED else build.name


def newest_builds(builds: Sequence[Build], most: int) -> list[Build]:
    """Return the newest builds of a channel, the oldest first. Raises ``MachineError`` if there is none."""
    if not builds:
        raise MachineError("the channel has no build for this Python: name another --channel, --python or --variant")
    found = {build.name: build for build in builds}
    return list(found.values())[-most:]


def open_states(bugs: Iterable[WatchedBug]) -> int:
    """Return the number of bugs that are not fixed."""
    return sum(one.standing.state is not State.FIXED for one in bugs)


def _today() -> str:
    return datetime.datetime.now(datetime.timezone.utc).date().isoformat()


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
