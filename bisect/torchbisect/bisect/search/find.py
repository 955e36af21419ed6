"""The search over builds: ``find_boundaries`` asks until the regression and the fix are as narrow as possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from torchbisect.bisect.search.boundary_search import BoundarySearch
from torchbisect.bisect.search.evidence import AskedBuild, BuildAnswer, BuildQuestion, SearchResult, T
from torchbisect.bisect.search.options import SearchOptions


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
    """Find where a bug came and where it went, in a list of builds of any type.

    In this example the bug came with 2.6 and went with 2.9, and it is known that 2.7 has it:

    >>> from torchbisect.bisect.search.evidence import BuildStatus
    >>> def ask(build):
    ...     return BuildAnswer(BuildStatus.BAD if "2.6" <= build < "2.9" else BuildStatus.GOOD)
    >>> builds = ["2.3", "2.4", "2.5", "2.6", "2.7", "2.8", "2.9"]
    >>> result = find_boundaries(builds, ask, SearchOptions(bad=builds.index("2.7")))
    >>> result.regression.last_good, result.regression.first_bad
    ('2.5', '2.6')
    >>> result.fix.last_bad, result.fix.first_fixed
    ('2.8', '2.9')

    The search asks the bad build first. No good build is known, so it steps down (2.6 to 2.5) and up (2.8 to 2.9)
    from there, in steps that grow, and then would halve the ranges that are left:

    >>> [asked.item for asked in result.tested]
    ['2.7', '2.6', '2.5', '2.8', '2.9']

    An untestable build is no evidence; where it lies beside the boundary, the answer is a range:

    >>> result = find_boundaries(
    ...     builds, lambda build: BuildAnswer(BuildStatus.UNTESTABLE, "import-failed") if build == "2.5" else ask(build)
    ... )
    >>> result.regression.last_good, result.regression.first_bad, result.regression.exact
    ('2.4', '2.6', False)
    >>> result.regression.between
    (SkippedBuild(item='2.5', reason='import-failed'),)

    Args:
        builds: the builds, oldest first.
        ask: asks one build; called from several threads at once if ``jobs`` is above one. What it raises ends the
            search and is passed on.
        options: what to look for, and how to choose.
        jobs: the number of builds that are asked at the same time.
        known: the answer of a build from an earlier run. All of these are evidence from the start. So a search that
            was ended early continues where it stood, even if other builds are cached now.
        ask_again: asks the ends that ``options.recheck`` names a second time, in a fresh environment; by default
            ``ask``. Where the second answer differs, it counts and the search goes on.
        prefetch: called before each question with the builds that may be asked next, so that they can be fetched
            meanwhile, and with those being asked. A build in neither is no longer needed (``prefetch.Prefetcher``).
        on_answer: called with each answer.

    Returns:
        What was found. A bug that is in the oldest build already, or is not fixed in the newest, is a result and no
        error.

    Raises:
        ValueError: for ends outside of the builds or on the wrong side of each other.
    """
    search = BoundarySearch(builds, options)

    def put(question: BuildQuestion[T]) -> BuildAnswer:
        return (ask_again if question.recheck and ask_again is not None else ask)(question.item)

    def take(question: BuildQuestion[T], answer: BuildAnswer) -> None:
        search.answer(question, answer)
        on_answer(search.asked[-1])

    for position, build in enumerate(builds):
        answer = known(build)
        if answer is not None:
            take(BuildQuestion(build, position), answer)
    if jobs > 1:
        _ask_concurrently(search, put, take, jobs=jobs, prefetch=prefetch)
    else:
        while questions := search.next():
            prefetch(search.likely(), [questions[0].item])
            take(questions[0], put(questions[0]))
    return search.result()


def _ask_concurrently(
    search: BoundarySearch[T],
    put: Callable[[BuildQuestion[T]], BuildAnswer],
    take: Callable[[BuildQuestion[T], BuildAnswer], None],
    *,
    jobs: int,
    prefetch: Callable[[Sequence[T], Sequence[T]], None],
) -> None:
    """Keep ``jobs`` questions running until the search needs no more; an answer that is needless by then still counts.

    What still runs when the search is over is waited for.
    """
    running: dict[Future[BuildAnswer], BuildQuestion[T]] = {}
    pool = ThreadPoolExecutor(jobs, thread_name_prefix="ask")
    try:
        while search.next():
            pending = {question.position for question in running.values()}
            for question in search.next(jobs - len(running), pending):
                running[pool.submit(put, question)] = question
            asking = {question.position: question.item for question in running.values()}
            prefetch(search.likely(asking), list(asking.values()))
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                take(running.pop(future), future.result())
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
