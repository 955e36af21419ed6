"""Bundling for the minimize stage: the user's own modules before the script is shrunk, a library's code after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from torchbisect.minimizer.bundle.bundle import bundled
from torchbisect.minimizer.bundle.module_parts import Lookup, Module
from torchbisect.minimizer.minimize import Budget, Reduction
from torchbisect.probe.module_sources import Library, module_source, siblings
from torchbisect.probe.oracle import Oracle, Question

#: The most nodes of a script with a library's code in it, about sixty lines. A maintainer would rather install the
#: library than read more, unless the original was longer.
LARGEST = 600


def with_local_modules(oracle: Oracle, question: Question) -> Question:
    """Return the question about a script that contains the local modules it imports, if it still shows the mismatch.

    Whole modules are tried first: their import may have effects that count.
    """
    repro = question.repro
    directory = repro.directory
    if directory is None or not siblings(repro.source, directory):
        return question

    def beside(name: str) -> Module | None:
        found = module_source(directory, name)
        return None if found is None else Module(name, *found)

    for whole in (True, False):
        text = bundled(repro.source, beside, whole=whole)
        if text is not None and oracle.ask(question.with_source(text)).same:
            return question.with_source(text)
    return question


def without_libraries(
    oracle: Oracle, question: Question, made: Reduction, reduced: Callable[[str, Budget], Reduction], budget: Budget
) -> Reduction:
    """Return the reduction of a script into which the code of the libraries that it imports was copied.

    One reduction counts both. Return ``made`` where there is no library, where the mismatch needs it, or where the
    result is too long to be read. ``budget`` is what is left of it.
    """
    if not made.finished:
        return made
    with Library(oracle.environment) as library:
        lookup = _lookup(library)
        for whole in (False, True):
            text = bundled(made.source, lookup, whole=whole)
            if text is not None and oracle.ask(question.with_source(text)).same:
                break
        else:
            return made
        more = reduced(text, budget)
        if more.nodes > max(LARGEST, made.original_nodes) or bundled(more.source, lookup, whole=False) is not None:
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
