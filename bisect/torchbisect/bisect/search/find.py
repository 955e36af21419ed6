"""The search as others call it: ``find``, and the values that go in and come out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torchbisect.bisect.search.evidence import Edge, Finding, Findings, Skipped, Status, T, Tested, Which
from torchbisect.bisect.search.scheduler import drive
from torchbisect.bisect.search.state import NOT_ASKED, Question, Search

__all__ = [
    "NOT_ASKED",
    "Edge",
    "Finding",
    "Findings",
    "Question",
    "Search",
    "Skipped",
    "Status",
    "Tested",
    "Which",
    "find",
]


def find(
    items: Sequence[T],
    ask: Callable[[T], Finding],
    *,
    bad: int | None = None,
    good: int | None = None,
    find: Which | str = Which.BOTH,
    cached: Callable[[T], bool] = lambda _: False,
    rank: Callable[[T], int] | None = None,
    first_step: int = 1,
    patience: int = 6,
    jobs: int = 1,
    known: Callable[[T], Finding | None] = lambda _: None,
    ask_again: Callable[[T], Finding] | None = None,
    both_again: bool = False,
    prefetch: Callable[[Sequence[T], Sequence[T]], None] = lambda _likely, _asking: None,
    abandon: Callable[[T], None] = lambda _: None,
    on_answer: Callable[[Tested[T]], None] = lambda _: None,
) -> Findings[T]:
    """Search ``items`` (oldest first) by asking ``ask``, until the edges are as narrow as the builds allow.

    Args:
        ask: the question; it may be called from several threads at once if ``jobs`` is above one. What it raises ends
            the search and is passed on.
        jobs: how many builds are asked at the same time.
        known: what an earlier run was told of a build. All of it is evidence from the start, so that a search that was
            ended early goes on where it stood, also if other builds are cached by now.
        ask_again: asks the good end of a finished edge a second time, in a fresh environment; with ``both_again`` also
            the bad end, and before it. Where it contradicts, it is believed and the search goes on.
        prefetch: told before each question which builds may come after it, so that they can be fetched meanwhile, and
            which are being asked; a build named in neither is not needed any more (``prefetching.Prefetcher``).
        abandon: told of a build whose answer, still being made, is not needed any more; ``find`` waits for it to end.
        on_answer: told of each answer as it is made.

    The other arguments are those of ``Search``. Returns what was found; that it was bad already in the oldest build,
    or is not fixed in the newest, is an answer and not an error. Raises ``ValueError`` for ends that can't be.
    """
    search = Search(
        items,
        bad=bad,
        good=good,
        find=find,
        cached=cached,
        rank=rank,
        first_step=first_step,
        patience=patience,
        ask_again="none" if ask_again is None else "both" if both_again else "good",
    )

    def put(question: Question[T]) -> Finding:
        return ask_again(question.item) if question.again and ask_again is not None else ask(question.item)

    def take(question: Question[T], finding: Finding) -> None:
        search.answer(question, finding)
        on_answer(search.findings().tested[-1])

    for position, item in enumerate(items):
        finding = known(item)
        if finding is not None:
            take(Question(item, position), finding)
    drive(search, put, take, jobs=jobs, prefetch=prefetch, abandon=abandon)
    return search.findings()
