"""Questions about an edit together with the removal of what it leaves unused."""

from __future__ import annotations

from collections.abc import Sequence

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit, apply_or_none
from torchbisect.minimizer.unused import without_unused


def attempt_and_clean(search: ReductionSearch, edits: Sequence[Edit], place: int = 0) -> int | None:
    """Attempt one edit after the other, each with the removal of what it leaves unused and has no side effect.

    Args:
        search: the search; its tree becomes the first candidate that is accepted.
        edits: edits of the search's tree.
        place: the position of the first edit to attempt.

    Returns:
        The position of the edit that was accepted, or ``None`` if none was.
    """
    base = search.tree
    made = (apply_or_none(base, [edit]) for edit in edits[place:])
    won = search.attempt_first(tree and without_unused(tree, harmless=True) for tree in made)
    return None if won is None else place + won
