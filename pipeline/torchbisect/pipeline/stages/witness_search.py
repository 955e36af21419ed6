"""Shrink the script again until it fails and passes on the same builds as the original.

A script may have several bugs of one signature, and the minimizer keeps one of them. On another build the shrunk
script then may pass where the original fails. Such a build becomes a witness: the script is shrunk again, and each
candidate must keep the verdict of the original there too.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from torchbisect.bisect.search.evidence import BuildAnswer, BuildStatus
from torchbisect.core.build import Build
from torchbisect.pipeline.session import Session
from torchbisect.pipeline.stages.bisect import Bisection, Level, telling_builds
from torchbisect.pipeline.stages.confirm import begin_on_build
from torchbisect.pipeline.stages.minimize import ShrunkScript, Witness
from torchbisect.probe.oracle import Question

#: The most witnesses; if the shrunk script still has another history, the builds are asked with the original.
MOST_WITNESSES = 2


@dataclass(frozen=True)
class BuildHistory:
    """The result of a search, and the question that got it.

    Attributes:
        question: the question that the builds were asked.
        shrunk: the shrunk script in that question, or ``None`` if it is about the original.
    """

    level: Level
    question: Question
    shrunk: ShrunkScript | None


def search_history(
    session: Session,
    bisection: Bisection,
    original: Question,
    shrunk: ShrunkScript | None,
    *,
    shrink_again: Callable[[tuple[Witness, ...]], ShrunkScript | None],
    on_level: Callable[[Level], None],
    on_remark: Callable[[str], None],
) -> BuildHistory:
    """Search the builds with the shrunk script if it has the history of the original, else with the original.

    Args:
        shrunk: the shrunk script, or ``None`` to ask about the original.
        shrink_again: shrinks the script once more with these witnesses.
        on_level: receives the result of each search.
        on_remark: receives a line for the reader of the report.
    """
    witnesses: dict[str, Witness] = {}
    with ExitStack() as stack:
        while True:
            question = original
            if shrunk is not None:
                question = replace(original, repro=shrunk.repro, settings=shrunk.settings)
            with session.display.stage("Bisect"):
                level = bisection.search(question, partial(_begin_at_end, session, bisection, original, shrunk))
                on_level(level)
                difference = _first_difference(bisection, original, question, level) if shrunk else None
            if difference is None:
                return BuildHistory(level, question, shrunk)
            build, answer = difference
            if len(witnesses) >= MOST_WITNESSES or build.name in witnesses:
                session.display.warn("the shrunk script's history is not the original's: bisecting the original")
                on_remark(
                    f"the builds were asked with the original script: on torch {build} the shrunk script does not "
                    "show what the original shows"
                )
                shrunk = None
                continue
            session.display.warn(f"torch {build} is {answer.status} for the original and not for the shrunk script")
            witnesses[build.name] = Witness(stack.enter_context(session.oracle(build)), answer.status)
            shrunk = shrink_again(tuple(witnesses.values()))


def _begin_at_end(
    session: Session, bisection: Bisection, original: Question, shrunk: ShrunkScript | None, build: Build
) -> None:
    """Begin what is needed of a boundary's end: the original there, and the shrunk script under plain Python."""
    if shrunk is None:
        return
    bisection.begin(build, original)
    if shrunk.stands_alone:
        begin_on_build(session, shrunk.repro_for_people, build)
    bisection.begin_listing()


def _first_difference(
    bisection: Bisection, original: Question, question: Question, level: Level
) -> tuple[Build, BuildAnswer] | None:
    """Return the first build at a boundary that tells the two questions apart, and its answer to the original."""
    builds = telling_builds(level.result)
    for build in builds:
        bisection.begin(build, original)
    for build in builds:
        answer = bisection.ask(build, original)
        if answer.status is BuildStatus.UNTESTABLE:
            continue
        if answer.status is not bisection.ask(build, question).status:
            return build, answer
    return None
