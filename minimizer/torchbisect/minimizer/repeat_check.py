"""Re-run each accepted candidate several times, because a smaller script may show the mismatch only sometimes.

A script that always fails often has a neighbor that fails now and then. One question cannot tell them apart, and a
reduction asks hundreds, so sooner or later it would accept the neighbor.
"""

from __future__ import annotations

from collections.abc import Callable

from torchbisect.core.verdict import Answer, Verdict

Ask = Callable[[str], Verdict]


def require_every_run(ask: Ask, ask_again: Ask, times: int) -> Ask:
    """Return an oracle that answers ``same`` only if each of several runs does.

    Args:
        ask: the oracle.
        ask_again: the same question answered by a further run, never from a cache.
        times: number of further runs for a candidate that shows the mismatch.

    Returns:
        An oracle that answers as ``ask`` does, but ``other`` with the reason ``not-every-time`` if a further run
        differs.
    """

    def ask_every_time(source: str) -> Verdict:
        first = ask(source)
        for _ in range(times if first.same else 0):
            further = ask_again(source)
            if not further.same:
                return Verdict(Answer.OTHER, "not-every-time", f"once {first.answer}, then {further.answer}")
        return first

    return ask_every_time
