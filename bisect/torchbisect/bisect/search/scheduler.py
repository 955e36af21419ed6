"""Puts a search's questions, one after the other or several at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Protocol

from torchbisect.bisect.search.evidence import Finding, T

if TYPE_CHECKING:
    from torchbisect.bisect.search.state import Question


class Asking(Protocol[T]):
    """What is needed of a search here."""

    def next(self, count: int = 1, pending: Collection[int] = ()) -> tuple[Question[T], ...]:
        """The next questions, the most useful first."""

    def likely(self, pending: Collection[int] | None = None) -> tuple[T, ...]:
        """The builds that may be asked after those pending."""


def drive(
    search: Asking[T],
    put: Callable[[Question[T]], Finding],
    take: Callable[[Question[T], Finding], None],
    *,
    jobs: int,
    prefetch: Callable[[Sequence[T], Sequence[T]], None],
    abandon: Callable[[T], None],
) -> None:
    """Ask until the search has no question left; what ``put`` raises is passed on at once."""
    if jobs > 1:
        _abreast(search, put, take, jobs=jobs, prefetch=prefetch, abandon=abandon)
        return
    while questions := search.next():
        prefetch(search.likely(), [questions[0].item])
        take(questions[0], put(questions[0]))


def _abreast(
    search: Asking[T],
    put: Callable[[Question[T]], Finding],
    take: Callable[[Question[T], Finding], None],
    *,
    jobs: int,
    prefetch: Callable[[Sequence[T], Sequence[T]], None],
    abandon: Callable[[T], None],
) -> None:
    """Keep ``jobs`` questions running. An answer that has become needless meanwhile still counts when it comes.

    The search is over once it wants nothing more; what still runs then is abandoned, and waited for.
    """
    running: dict[Future[Finding], Question[T]] = {}
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
        for question in running.values():
            abandon(question.item)
        pool.shutdown(wait=True, cancel_futures=True)
