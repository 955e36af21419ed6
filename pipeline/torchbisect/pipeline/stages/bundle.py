"""Takes what a script imports into it: modules of the user's own before it is shrunk, a library's code after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from torchbisect.minimizer.bundle.bundle import linked
from torchbisect.minimizer.bundle.module_parts import Lookup, Module
from torchbisect.minimizer.minimize import Budget, Reduction
from torchbisect.probe.library_sources import Library
from torchbisect.probe.local_modules import siblings, source_beside
from torchbisect.probe.oracle import Oracle
from torchbisect.probe.question import Question

#: Nodes of what may come of a library's code, about sixty lines: a maintainer would rather install it than read
#: more than that, unless the script was longer from the first.
LARGEST = 600


def with_own_modules(probe: Oracle, question: Question) -> Question:
    """The question about one script that has all that it imports from beside it, if it still shows the mismatch.

    Whole modules first: what they do when they are imported may count.
    """
    repro = question.repro
    directory = repro.directory
    if directory is None or not siblings(repro.source, directory):
        return question

    def beside(name: str) -> Module | None:
        found = source_beside(directory, name)
        return None if found is None else Module(name, *found)

    for whole in (True, False):
        text = linked(repro.source, beside, whole=whole)
        if text is not None and probe.ask(question.with_source(text)).same:
            return question.with_source(text)
    return question


def without_libraries(
    probe: Oracle, question: Question, made: Reduction, reduced: Callable[[str, Budget], Reduction], budget: Budget
) -> Reduction:
    """What was shrunk, shrunk further with the code of the libraries that it imports written into it.

    Args:
        probe: asks, and has the environment with the libraries.
        question: about what was shrunk.
        made: how that came about.
        reduced: shrinks a text.
        budget: what the whole may cost.

    Returns:
        ``made`` where there is no library, the mismatch is gone without it, or what comes of it can't be read; else
        one reduction that counts both.
    """
    if not made.finished:
        return made
    with Library(probe.environment) as library:
        lookup = _lookup(library)
        for whole in (False, True):
            text = linked(made.source, lookup, whole=whole)
            if text is not None and probe.ask(question.with_source(text)).same:
                break
        else:
            return made
        more = reduced(text, _left(budget, made))
        if more.nodes > max(LARGEST, made.original_nodes) or linked(more.source, lookup, whole=False) is not None:
            return made
    return replace(
        more,
        original_bytes=made.original_bytes,
        original_lines=made.original_lines,
        original_nodes=made.original_nodes,
        asked=made.asked + more.asked,
        seconds=made.seconds + more.seconds,
        trajectory=(
            *made.trajectory,
            *((asked + made.asked, seconds + made.seconds, size) for asked, seconds, size in more.trajectory),
        ),
    )


def _lookup(library: Library) -> Lookup:
    def look_up(name: str) -> Module | None:
        found = library.source(name)
        return None if found is None else Module(name, *found)

    return look_up


def _left(budget: Budget, made: Reduction) -> Budget:
    seconds = None if budget.seconds is None else max(0.0, budget.seconds - made.seconds)
    questions = None if budget.questions is None else max(0, budget.questions - made.asked)
    return Budget(seconds, questions)
