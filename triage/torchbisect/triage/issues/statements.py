"""Tell what a person says of a thing in a sentence: that it fails with it, or that it works."""

from __future__ import annotations

import re
from dataclasses import dataclass

# A clause ends at punctuation, and before a word of contrast. A full stop inside a version is followed by a digit.
_CLAUSE_END = re.compile(
    r"[,;()|!?✅❌]|[.:](?=\s|$)|\b(?:but|while|whereas|however|and (?=(?:fails|works|breaks))|yet)\b|->|→|—",
    re.IGNORECASE,
)
_NEGATED = (
    r"(?:does(?:n['’]?t| not)|do(?:n['’]?t| not)|did(?:n['’]?t| not)|is(?:n['’]?t| not)|was(?:n['’]?t| not)|not|never|"
    r"no longer|stop(?:s|ped)?|can(?:['’]?t|not))"
)
_GOOD_WORDS = (
    r"(?:work(?:s|ed|ing)?|fine|ok|okay|pass(?:es|ed)?|succeed(?:s|ed)?|correct(?:ly)?|good|unaffected|fixed|"
    r"disappears?|avoid(?:s|ed)?|goes away|gone|workaround|resolved|expected result|identical|match(?:es)?)"
)
_BAD_WORDS = (
    r"(?:fail(?:s|ed|ing|ure)?|br[eo]ken?|breaks?|broke|errors? out|errors?|wrong|crash(?:es|ed)?|bug|bad|incorrect|"
    r"reproduc(?:es?|ed|ible)|regress(?:ed|ion|es)?|hangs?|raises?|throws?|affected|occurs?|happens?|still|mismatch|nan)"
)
_STATUS = re.compile(
    rf"(?P<no>\b{_NEGATED}\b\s{{1,3}}(?:\w{{1,12}}\s{{1,3}}){{0,2}}?)?"
    rf"\b(?:(?P<good>{_GOOD_WORDS})|(?P<bad>{_BAD_WORDS}))\b|(?P<without>\b(?:no|without)\s{{1,3}}"
    r"(?:any\s{1,3}|the\s{1,3})?(?:errors?|problems?|issues?|bugs?|crash|failures?)\b)"
    r"|(?P<yes>✅|✓|👍)|(?P<cross>❌|✗|👎)",
    re.IGNORECASE,
)
_DENIED = re.compile(rf"\b{_NEGATED}[\s.]{{0,4}}$", re.IGNORECASE)


@dataclass(frozen=True)
class Clause:
    """A clause of a line, and what it says: ``True`` that it works, ``False`` that it fails, ``None`` neither."""

    start: int
    end: int
    works: bool | None


def clauses(line: str) -> list[Clause]:
    """Split a line into clauses. A clause without a judgment has that of the clause after it, which may judge it."""
    ends = [*((found.start(), found.end()) for found in _CLAUSE_END.finditer(line)), (len(line), len(line))]
    result: list[Clause] = []
    start = 0
    for end, after in ends:
        part = line[start:end]
        sign = line[end:after]
        works = _judgment(part)
        if works is None and result and result[-1].works is not None and part.lstrip().lower().startswith("not "):
            # "reproduces in 2.5 but not in 2.6"
            works = not result[-1].works
        if works is None and sign in ("✅", "❌"):
            works = sign == "✅"
        result.append(Clause(start, end, works))
        start = after
    return result


def _judgment(part: str) -> bool | None:
    """Return what the last judging word of a text says."""
    result = None
    for found in _STATUS.finditer(part):
        if found["without"] or found["yes"]:
            result = True
        elif found["cross"]:
            result = False
        else:
            result = (found["good"] is not None) is (found["no"] is None)
    # "2.5 works, 2.6 does not"
    return False if result is None and _DENIED.search(part[-40:]) else result
