"""Wins that are no luck: where a smaller script shows the mismatch only sometimes, each win is asked about again.

A script that always fails often has a neighbour that fails now and then. One question can't tell them apart, and a
reduction asks hundreds, so sooner or later it would take the neighbour.
"""

from __future__ import annotations

from collections.abc import Callable

from torchbisect.core.verdict import Answer, Verdict

Ask = Callable[[str], Verdict]


def every_time(ask: Ask, again: Ask, times: int) -> Ask:
    """An oracle that says yes only if every one of several runs does.

    Args:
        ask: the oracle.
        again: the same question by one more run, from no memory.
        times: how many more runs a win needs.

    Returns:
        What answers as ``ask`` does, but ``other`` with the reason ``not-every-time`` where a further run differs.
    """

    def sure(source: str) -> Verdict:
        first = ask(source)
        for _ in range(times if first.same else 0):
            further = again(source)
            if not further.same:
                return Verdict(Answer.OTHER, "not-every-time", f"once {first.answer}, then {further.answer}")
        return first

    return sure
