"""One pass of the minimizer, run on a small program with an oracle that looks for words."""

from __future__ import annotations

from collections.abc import Callable

from torchbisect.core.python_text import parse_python
from torchbisect.core.trace import Trace
from torchbisect.core.verdict import Answer, Verdict
from torchbisect.minimizer.budget import Budget
from torchbisect.minimizer.candidate_filter import CandidateFilter
from torchbisect.minimizer.interestingness import InterestingnessTest
from torchbisect.minimizer.minimize import SCHEDULE
from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import tidy


def having(*words: str) -> Callable[[str], Verdict]:
    """Return an oracle: the mismatch is there while all of these words are in the text."""
    return lambda text: Verdict(Answer.SAME if all(word in text for word in words) else Answer.NONE)


def after(name: str, program: str, *words: str, trace: Trace | None = None, place: str = "") -> str:
    """Return the program after one pass, with an oracle that looks for these words; ``place`` is where it saw them."""
    tree = tidy(parse_python(program))
    test = InterestingnessTest(having(*words), Budget(), lambda progress: None, filter=CandidateFilter.of(tree))
    test.place = place
    search = ReductionSearch(tree, test, trace=trace)
    SCHEDULE.passes[name](search)
    return search.text
