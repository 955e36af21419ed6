"""Find the regression and the fix: ask an oracle until ``BoundarySearch`` has no question left.

An untestable build is no evidence. Where it lies beside a boundary, the answer is a range, and the reason is given:

>>> from torchbisect.bisect.search.evidence import BuildAnswer, BuildStatus
>>> answers = {
...     "2.3": BuildAnswer(BuildStatus.GOOD),
...     "2.4": BuildAnswer(BuildStatus.UNTESTABLE, "import-failed"),
...     "2.5": BuildAnswer(BuildStatus.BAD),
... }
>>> regression = find_boundaries(list(answers), answers.__getitem__).regression
>>> regression.last_good, regression.first_bad, regression.exact
('2.3', '2.5', False)
>>> regression.between
(SkippedBuild(item='2.4', reason='import-failed'),)
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Generic

from torchbisect.bisect.search.boundary_search import BoundarySearch
from torchbisect.bisect.search.evidence import AskedBuild, BuildAnswer, BuildQuestion, SearchResult, T
from torchbisect.bisect.search.search_options import SearchOptions


def find_boundaries(
    builds: Sequence[T],
    ask: Callable[[T], BuildAnswer],
    options: SearchOptions[T] | None = None,
    *,
    jobs: int = 1,
    known: Callable[[T], BuildAnswer | None] = lambda _: None,
    ask_again: Callable[[T], BuildAnswer] | None = None,
    prefetch: Callable[[Sequence[T], Sequence[T]], None] = lambda _likely, _asking: None,
    on_answer: Callable[[AskedBuild[T]], None] = lambda _: None,
) -> SearchResult[T]:
    """Find where a bug came and where it went, in a list of builds of any type, oldest first.

    In this example 2.6 brought the bug, 2.9 fixed it, and 2.7 is known to have it. The search steps from 2.7 down to
    a good build and up to a fixed one, and halves the ranges that are left:

    >>> from torchbisect.bisect.search.evidence import BuildStatus
    >>> def ask(build):
    ...     return BuildAnswer(BuildStatus.BAD if "2.6" <= build < "2.9" else BuildStatus.GOOD)
    >>> result = find_boundaries(["2.3", "2.4", "2.5", "2.6", "2.7", "2.8", "2.9"], ask, SearchOptions(bad=4))
    >>> result.regression.last_good, result.regression.first_bad, result.fix.last_bad, result.fix.first_fixed
    ('2.5', '2.6', '2.8', '2.9')
    >>> [asked.item for asked in result.tested]
    ['2.6', '2.5', '2.8', '2.9']

    Args:
        builds: the builds, oldest first.
        ask: asks one build, in several threads if ``jobs`` is above one. An exception ends the search.
        options: what to look for, and how to choose. Impossible ends raise ``ValueError``.
        jobs: the number of builds that are asked at the same time.
        known: a build's answer from an earlier run, so that an interrupted search continues and asks nothing twice.
        ask_again: asks the ends that ``options.recheck`` names a second time; by default ``ask``. This answer counts.
        prefetch: called before each question with the builds that may come next and those being asked (see
            ``Prefetcher``).
        on_answer: called with each answer.
    """
    loop = _Loop(BoundarySearch(builds, options), ask, ask_again or ask, prefetch, on_answer)
    loop.take_known(known)
    if jobs > 1:
        loop.run_concurrently(jobs)
    else:
        loop.run()
    return loop.search.result()


@dataclass(frozen=True)
class _Loop(Generic[T]):
    """Asks the questions of a search until it has none left; the attributes are those of ``find_boundaries``."""

    search: BoundarySearch[T]
    ask: Callable[[T], BuildAnswer]
    ask_again: Callable[[T], BuildAnswer]
    prefetch: Callable[[Sequence[T], Sequence[T]], None]
    on_answer: Callable[[AskedBuild[T]], None]

    def take_known(self, known: Callable[[T], BuildAnswer | None]) -> None:
        """Take in the answers of an earlier run."""
        for position, build in enumerate(self.search.builds):
            answer = known(build)
            if answer is not None:
                self._take(BuildQuestion(build, position), answer)

    def run(self) -> None:
        """Ask one question after the other."""
        while questions := self.search.next():
            self.prefetch(self.search.likely(), [questions[0].item])
            self._take(questions[0], self._put(questions[0]))

    def run_concurrently(self, jobs: int) -> None:
        """Keep ``jobs`` questions running. An answer that is no longer needed when it comes still counts.

        Questions that still run when the search is over are waited for.
        """
        running: dict[Future[BuildAnswer], BuildQuestion[T]] = {}
        pool = ThreadPoolExecutor(jobs, thread_name_prefix="ask")
        try:
            while self.search.next():
                pending = {question.position for question in running.values()}
                for question in self.search.next(jobs - len(running), pending):
                    running[pool.submit(self._put, question)] = question
                asking = {question.position: question.item for question in running.values()}
                self.prefetch(self.search.likely(asking), list(asking.values()))
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    self._take(running.pop(future), future.result())
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _put(self, question: BuildQuestion[T]) -> BuildAnswer:
        return (self.ask_again if question.recheck else self.ask)(question.item)

    def _take(self, question: BuildQuestion[T], answer: BuildAnswer) -> None:
        self.search.answer(question, answer)
        self.on_answer(self.search.asked[-1])


class Prefetcher(Generic[T]):
    """Fetches likely builds, one thread for each; the ``prefetch`` argument of ``find_boundaries``.

    Args:
        fetch: fetches a build, until the event is set. It must not raise: a failure comes back when the build is asked.
        room: called with a build and the number of running fetches; false if the disk has no room for it.
    """

    def __init__(
        self,
        fetch: Callable[[T, threading.Event], None],
        room: Callable[[T, int], bool] = lambda build, running: True,
    ) -> None:
        self._fetch = fetch
        self._room = room
        self._running: dict[T, tuple[threading.Event, threading.Thread]] = {}
        self._stopping: list[threading.Thread] = []

    def __enter__(self) -> Prefetcher[T]:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __call__(self, likely: Sequence[T], asking: Sequence[T]) -> None:
        """Fetch the likely builds from now on, the likelier first, and stop all other fetches.

        A fetch of a build that is being asked continues, because it is waited for.
        """
        for item in [item for item in self._running if item not in likely and item not in asking]:
            self._stop(item)
        for item in likely:
            if item not in self._running and self._room(item, self._alive()):
                event = threading.Event()
                thread = threading.Thread(target=self._fetch, args=(item, event), name=f"fetch {item}", daemon=True)
                self._running[item] = event, thread
                thread.start()

    def close(self) -> None:
        """Stop all fetches, and wait until they have ended."""
        for item in list(self._running):
            self._stop(item)
        for thread in self._stopping:
            thread.join()
        self._stopping.clear()

    def _alive(self) -> int:
        """Return the number of running fetches, with those that were told to stop and have not ended yet."""
        return sum(thread.is_alive() for thread in [*self._stopping, *(thread for _, thread in self._running.values())])

    def _stop(self, item: T) -> None:
        event, thread = self._running.pop(item)
        event.set()
        self._stopping = [*(other for other in self._stopping if other.is_alive()), thread]
