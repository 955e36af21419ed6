"""The sentences about an edge. The one place where text for a regression is turned round for a fix."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Side:
    """The words for one direction of search.

    Attributes:
        before: what the older end is called.
        after: what the newer end is called.
        no_older: said of ``after`` when nothing older of the other kind was met; ``None`` where that can't be.
        no_newer: said of ``before`` when nothing newer of the other kind was met.
    """

    name: str
    before: str
    after: str
    no_older: str
    no_newer: str

    def sentence(self, before: str | None, after: str | None, between: int) -> str:
        """One sentence for an edge; ``between`` is how many builds lie inside it."""
        if before is None and after is None:
            return f"no {self.name} was found: no build could be tested"
        if before is None:
            return f"{self.no_older} {after}, the oldest build that can be tested"
        if after is None:
            return f"{self.no_newer} {before}, the newest build that can be tested"
        ends = f"{self.before} {before}, {self.after} {after}"
        if between:
            return f"{ends}; {between} {'build' if between == 1 else 'builds'} between them could not be tested"
        return ends


REGRESSION = Side(
    name="regression",
    before="last good",
    after="first bad",
    no_older="already bad in",
    no_newer="still good in",
)
FIX = Side(
    name="fix",
    before="last bad",
    after="first fixed",
    no_older="already good in",
    no_newer="not fixed in",
)
