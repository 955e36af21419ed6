"""From a user's script to what a maintainer would have written: the passes in their order, to a fixpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache, partial
from operator import itemgetter

from torchbisect.core.trace import Trace
from torchbisect.core.verdict import Verdict
from torchbisect.minimizer.budget import Budget, BudgetSpent, Ledger, Progress, Statistics
from torchbisect.minimizer.passes import (
    autograd_function_args,
    delete_elements,
    delete_parameters,
    delete_statements,
    flatten_classes,
    fold,
    hoist_subexpressions,
    idioms,
    imports,
    inline,
    isolate_call,
    lift,
    module_to_function,
    promote_input,
    registries,
    remove_unexecuted,
    remove_unused,
    rename,
    replace_by_value,
    replace_layers,
    return_argument,
    shrink_constants,
    substitute,
    truncate_functions,
    unwrap_blocks,
)
from torchbisect.minimizer.search import Search
from torchbisect.minimizer.sort_key import measure
from torchbisect.minimizer.syntax.layout import laid_out
from torchbisect.minimizer.syntax.tree import nodes, parse, quoting_itself, text_of, tidy

__all__ = ["Budget", "Progress", "Reduction", "Statistics", "minimize"]

Tracer = Callable[[str], "Trace | None"]
Pass = Callable[[Search], None]


def _in_turn(*passes: Pass) -> Pass:
    """Return a pass that runs several passes, one after the other."""

    def run(search: Search) -> None:
        for one in passes:
            one(search)

    return run


# Passes that first make the script larger are handed the passes that make it smaller again.
_inline = partial(inline.run, finish=remove_unused.run)
_module_to_function = partial(module_to_function.run, finish=_in_turn(remove_unused.run, substitute.run))
_unwrap_blocks = partial(unwrap_blocks.run, finish=_in_turn(delete_statements.run, fold.run, substitute.run))

_OPENING: tuple[tuple[str, Pass], ...] = (
    ("imports.torch_by_name", imports.torch_by_name),
    ("isolate_call", isolate_call.run),
    ("remove_unexecuted", remove_unexecuted.run),
    ("inline", _inline),
    ("delete_statements.outermost", delete_statements.outermost),
    ("remove_unused", remove_unused.run),
    ("truncate_functions", truncate_functions.run),
    ("replace_by_value", replace_by_value.run),
)
_ROUND: tuple[tuple[str, Pass], ...] = (
    ("unwrap_blocks", _unwrap_blocks),
    ("fold", fold.run),
    ("inline", _inline),
    ("remove_unused", remove_unused.run),
    ("truncate_functions", truncate_functions.run),
    ("delete_statements", delete_statements.run),
    ("substitute", substitute.run),
    ("flatten_classes", flatten_classes.run),
    ("module_to_function", _module_to_function),
    ("replace_layers", replace_layers.run),
    ("delete_parameters", delete_parameters.run),
    ("autograd_function_args", autograd_function_args.run),
    ("delete_elements", delete_elements.run),
    ("hoist_subexpressions", hoist_subexpressions.run),
    ("return_argument", return_argument.run),
    ("registries", registries.run),
    ("promote_input", promote_input.run),
    ("shrink_constants", shrink_constants.run),
    ("imports", imports.run),
    ("idioms", idioms.run),
)
_FINISH: tuple[tuple[str, Pass], ...] = (("lift", lift.run), ("rename", rename.run))
PASSES = tuple(dict((*_OPENING, *_ROUND, *_FINISH)).items())
"""Every pass by its name: its module's, with its function's where a module has several."""


@dataclass(frozen=True)
class Reduction:
    """What a reduction came to.

    Attributes:
        source: the smallest script that shows the same mismatch, laid out to be read.
        bytes, lines, nodes: its size; lines that are blank don't count.
        original_bytes, original_lines, original_nodes: the size of the script it came from.
        asked: how many candidates were asked about.
        seconds: wall time.
        finished: whether it came to its end; ``False`` when the budget ran out first.
        statistics: by pass.
        trajectory: after each win, how many had been asked, the seconds since the start, and the bytes.
    """

    source: str
    bytes: int
    lines: int
    nodes: int
    original_bytes: int
    original_lines: int
    original_nodes: int
    asked: int
    seconds: float
    finished: bool = True
    statistics: dict[str, Statistics] = field(default_factory=dict, hash=False)
    trajectory: tuple[tuple[int, float, int], ...] = ()


def minimize(
    source: str,
    ask: Callable[[str], Verdict],
    *,
    trace: Tracer | Trace | None = None,
    budget: Budget | None = None,
    on_best: Callable[[str], None] = lambda text: None,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    expect: Callable[[Iterable[str]], None] = lambda texts: None,
    backend: str | None = None,
) -> Reduction:
    """Shrink a script that shows a mismatch; every step that is kept was answered ``same``.

    The same source and the same answers give the same questions in the same order, so a run that was cut short
    replays from a journal of answers.

    Args:
        source: the script; taken to show the mismatch as it is.
        ask: whether a candidate shows the same mismatch. What it raises goes through; ``on_best`` had the best so far.
        trace: what an eager run of the script does, or how to get that for a text; passes that need it do nothing
            without one.
        budget: when to stop and keep the best.
        on_best: given each new best text at once.
        on_progress: given a line's worth of figures at each new best.
        expect: given, before each question, the texts that come next if the answer is no, so that they can be asked
            about meanwhile. It changes no result.
        backend: what ``torch.compile`` calls that the minimizer writes name as their backend; by default what the
            script's own name.

    Raises:
        SyntaxError: the script is not Python.
    """
    tree = parse(source)
    ledger = Ledger(ask, budget or Budget(), on_progress, expect)
    ledger.begin(tree)
    tracer = _remembered(trace, source)
    search = Search(tidy(quoting_itself(tree)), ledger, trace=tracer(source), on_best=on_best)
    finished = True
    ledger.stage = "plain text"
    try:
        if not ledger.answer(search.text):
            # Not even its own text without comments and docstrings shows it: the script reads itself.
            return _result(source, source, search, finished=True)
        on_best(search.text + "\n")
        _to_the_end(search, source, tracer, backend)
    except BudgetSpent:
        finished = False
    return _result(source, laid_out(search.tree), search, finished=finished)


def _remembered(trace: Tracer | Trace | None, source: str) -> Tracer:
    """A trace by its text; a text is traced once."""
    if not callable(trace):
        return lambda text: trace if text == source else None
    return cache(trace)


def _to_the_end(search: Search, source: str, tracer: Tracer, backend: str | None) -> None:
    """One turn after the other, each as a new reduction of what the last one left, until that is where it began.

    So a reduction of the result gives the result: it would be one more turn. Turns that lead round in a circle (what
    reads well is reworded, and reworded back) end at the smallest text of it, wherever they came into it.
    """
    texts = [source]
    while True:
        _turn(search, tracer, backend)
        text = laid_out(search.tree)
        if text in texts:
            break
        texts.append(text)
        search.begin(text, tracer(text))
    circle = [(measure(tree, text_of(tree)), tree) for tree in map(parse, texts[texts.index(text) :])]
    if len(circle) > 1:
        search.settle(min(circle, key=itemgetter(0))[1])


def _turn(search: Search, tracer: Tracer, backend: str | None) -> None:
    """The opening, rounds of all the passes until one wins nothing, and what makes it read well."""
    _opening(search, tracer, backend)
    before = ""
    while search.text != before:
        before = search.text
        for name, run in _ROUND:
            search.ledger.stage = name
            run(search)
        search.ledger.stage = "replace_by_value"
        _retrace(search, tracer)
        replace_by_value.run(search)
    for name, run in _FINISH:
        search.ledger.stage = name
        run(search)


def _opening(search: Search, tracer: Tracer, backend: str | None) -> None:
    """The passes that take away most in few questions and need the trace of the whole script."""
    for name, run in _OPENING:
        search.ledger.stage = name
        before = search.text
        if run is isolate_call.run:
            isolate_call.run(search, backend or isolate_call.backend_of(search.tree))
        else:
            run(search)
        if search.text != before:
            _retrace(search, tracer)


def _retrace(search: Search, tracer: Tracer) -> None:
    """A trace of the best so far, with its tree's lines made to agree."""
    text = search.text + "\n"
    found = tracer(text)
    if found is not None:
        search.tree = tidy(parse(text))
        search.trace = found


def _result(source: str, text: str, search: Search, *, finished: bool) -> Reduction:
    ledger = search.ledger
    return Reduction(
        source=text,
        bytes=len(text.encode()),
        lines=_lines(text),
        nodes=nodes(parse(text)),
        original_bytes=len(source.encode()),
        original_lines=_lines(source),
        original_nodes=nodes(parse(source)),
        asked=ledger.asked,
        seconds=ledger.seconds,
        finished=finished,
        statistics={name: item for name, item in ledger.statistics.items() if item.asked},
        trajectory=tuple(search.trajectory),
    )


def _lines(text: str) -> int:
    return sum(1 for line in text.splitlines() if line.strip())
