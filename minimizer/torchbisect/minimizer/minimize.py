"""Reduce a script that shows a mismatch: all passes in their order, repeated until none changes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cache, partial
from operator import itemgetter

from torchbisect.core.python_text import parse_python
from torchbisect.core.trace import Trace
from torchbisect.core.verdict import Verdict
from torchbisect.minimizer.budget import (
    Budget,
    BudgetExhausted,
    PassSuspended,
    Patience,
    PatienceEnded,
    Progress,
    Statistics,
)
from torchbisect.minimizer.interestingness import InterestingnessTest
from torchbisect.minimizer.passes import (
    cut_data_flow,
    delete,
    delete_fields,
    delete_parameters,
    fix_random_inputs,
    flatten_classes,
    fold,
    hoist,
    idioms,
    inline,
    isolate_call,
    promote_inputs,
    remove_unused,
    replace_by_part,
    replace_by_value,
    replace_layers,
    shrink_constants,
    shrink_literals,
    split_containers,
    substitute,
    unwrap_blocks,
    unwrap_objects,
)
from torchbisect.minimizer.search import ReductionSearch, sort_key
from torchbisect.minimizer.syntax.edits import inline_docstring, tidy
from torchbisect.minimizer.syntax.tree import count_nodes, format_script, text_of

__all__ = ["Budget", "Patience", "Progress", "Reduction", "Statistics", "minimize", "with_source"]

Tracer = Callable[[str], "Trace | None"]
Pass = Callable[[ReductionSearch], None]


@dataclass(frozen=True)
class Schedule:
    """The passes of a reduction by name, in the order in which they run.

    A pass is named after its module. Where a module has several, the name of the function follows: ``delete.elements``.

    Attributes:
        opening: the passes that remove most in few questions; some need the trace of the whole script.
        main: the passes that are repeated until none changes the script.
        traced: main passes that run behind the others, each on a new trace.
        final: the passes that make the result readable.
    """

    opening: tuple[tuple[str, Pass], ...]
    main: tuple[tuple[str, Pass], ...]
    traced: tuple[tuple[str, Pass], ...]
    final: tuple[tuple[str, Pass], ...]

    @property
    def passes(self) -> dict[str, Pass]:
        """Every pass by its name."""
        return dict((*self.opening, *self.main, *self.traced, *self.final))

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules of the passes, in the order in which they first run."""
        return tuple(dict.fromkeys(map(self.module_of, self.passes)))

    def without(self, module: str) -> Schedule:
        """Return the schedule without the passes of a module."""
        parts = (self.opening, self.main, self.traced, self.final)
        return Schedule(*(tuple(item for item in part if self.module_of(item[0]) != module) for part in parts))

    @staticmethod
    def module_of(name: str) -> str:
        """Return the module of a pass."""
        return name.partition(".")[0]


def _in_turn(*passes: Pass) -> Pass:

    def run(search: ReductionSearch) -> None:
        for one in passes:
            one(search)

    return run


# Passes that may first make the script larger are handed the passes that make it smaller again.
_inline = partial(inline.run, finish=remove_unused.run)
_take_apart = partial(flatten_classes.objects, finish=_in_turn(remove_unused.run, substitute.run))
_shrink_body = _in_turn(delete.statements, fold.run, substitute.run)
_blocks = partial(unwrap_blocks.run, finish=_shrink_body)
_iterations = partial(replace_by_value.iterations, finish=_shrink_body)

SCHEDULE = Schedule(
    opening=(
        ("isolate_call", isolate_call.run),
        ("hoist", hoist.run),
        ("shrink_literals", shrink_literals.run),
        ("replace_by_value.iterations", _iterations),
        ("cut_data_flow.attributes", cut_data_flow.attributes),
        ("delete.decorators", delete.decorators),
        ("inline", _inline),
        ("delete.outermost_statements", delete.outermost_statements),
        ("remove_unused", remove_unused.run),
        ("cut_data_flow.downstream", cut_data_flow.downstream),
        ("cut_data_flow.upstream", cut_data_flow.upstream),
        ("replace_by_value.expressions", replace_by_value.expressions),
        ("fix_random_inputs", fix_random_inputs.run),
        ("idioms.names_together", idioms.names_together),
    ),
    main=(
        ("unwrap_blocks", _blocks),
        ("fold", fold.run),
        ("inline.generators", inline.generators),
        ("inline", _inline),
        ("remove_unused", remove_unused.run),
        ("cut_data_flow.downstream", cut_data_flow.downstream),
        ("delete.statements", delete.statements),
        ("substitute", substitute.run),
        ("flatten_classes.classes", flatten_classes.classes),
        ("unwrap_objects", unwrap_objects.run),
        ("flatten_classes.objects", _take_apart),
        ("replace_layers", replace_layers.run),
        ("split_containers", split_containers.run),
        ("delete_parameters.functions", delete_parameters.functions),
        ("delete_fields", delete_fields.run),
        ("delete_parameters.autograd_functions", delete_parameters.autograd_functions),
        ("delete.optional_parts", delete.optional_parts),
        ("remove_unused", remove_unused.run),
        ("shrink_literals", shrink_literals.run),
        ("delete.elements", delete.elements),
        ("replace_by_part", replace_by_part.run),
        ("promote_inputs", promote_inputs.run),
        ("shrink_constants", shrink_constants.run),
        ("idioms.short_forms", idioms.short_forms),
        ("remove_unused", remove_unused.run),
    ),
    traced=(
        ("cut_data_flow.attributes", cut_data_flow.attributes),
        ("cut_data_flow.upstream", cut_data_flow.upstream),
        ("replace_by_value.iterations", _iterations),
        ("replace_by_value.expressions", replace_by_value.expressions),
        ("fix_random_inputs", fix_random_inputs.run),
    ),
    final=(("idioms.inputs", idioms.inputs), ("idioms.names", idioms.names)),
)

MOST_FAILURES = 2
"""The failures in a row after which a main pass is suspended in the first turns; an opening pass has twice as many."""
LEAST_SHARE = 0.25
"""The part of the script that a turn has to remove for another one in which passes may be suspended."""
_UNLIMITED = frozenset({"isolate_call"})
"""Opening passes that are never suspended: what they remove is what the others need not ask about."""


@dataclass(frozen=True)
class Reduction:
    """The result of a reduction.

    Attributes:
        source: the smallest script found that shows the same mismatch, formatted for readers.
        bytes, lines, nodes: its size; blank lines do not count.
        asked: number of candidates that were asked about.
        finished: ``False`` if the budget ran out before the reduction was complete.
        paid_off: ``False`` if it ended before it was complete because the last questions removed next to nothing.
        trajectory: after each accepted candidate the number of questions, the seconds since the start, and the bytes.
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
    paid_off: bool = True
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
    patience: Patience | None = None,
    accepts: Callable[[str], bool] = lambda text: True,
) -> Reduction:
    """Shrink a script that shows a mismatch; every change that is kept was answered ``same``.

    The same source and the same answers give the same questions in the same order, so an interrupted reduction can be
    replayed from a journal of answers.

    Args:
        source: the script, assumed to show the mismatch.
        ask: the oracle: does a candidate show the same mismatch? Its exceptions propagate.
        trace: the trace of an eager run of the script, or a function from a text to its trace. Without a trace, the
            passes that need one do nothing.
        budget: when to stop and return the best script so far.
        on_best, on_progress: receive each new best text, and the figures at it, at once.
        expect: receives, before each question, the texts that come next if the answer is no, so that they can be asked
            about in parallel. It does not change the result.
        backend: the backend of ``torch.compile`` calls that a pass writes; by default the one that the script names.
        patience: when to end before the reduction is complete, because it no longer pays; by default never.
        accepts: tells whether a text may be asked about; one that lost what the question is about need not be.

    Raises:
        SyntaxError: the script is not Python.
    """
    tree, tracer = parse_python(source), _cached_tracer(trace, source)
    sizes = [(0, count_nodes(tree))]
    test = InterestingnessTest(
        ask, budget or Budget(), on_progress, expect, patience=patience, sizes=sizes, accepts=accepts
    )
    test.begin_round(tree)
    search = ReductionSearch(tidy(inline_docstring(tree)), test, trace=tracer(source), on_best=on_best)
    finished = paid_off = True
    test.stage = "plain text"
    try:
        if not test.is_interesting(search.text):  # it reads its own text, with comments and docstrings
            return _reduction(source, source, search, finished=True)
        on_best(search.text + "\n")
        _reduce_to_fixpoint(search, source, tracer, backend)
    except PatienceEnded:
        paid_off, test.patience = False, None
        finished = _make_readable(search)
    except BudgetExhausted:
        finished = False
    return _reduction(source, format_script(search.tree), search, finished=finished, paid_off=paid_off)


def _make_readable(search: ReductionSearch) -> bool:
    """Run the final passes; return ``False`` if the budget ran out."""
    try:
        _run_final_passes(search)
    except BudgetExhausted:
        return False
    return True


def _cached_tracer(trace: Tracer | Trace | None, source: str) -> Tracer:
    if not callable(trace):
        return lambda text: trace if text == source else None
    return cache(trace)


def _reduce_to_fixpoint(search: ReductionSearch, source: str, tracer: Tracer, backend: str | None) -> None:
    """Run rounds, each on the result of the one before it, until a round returns a text that was seen before.

    So a reduction of the result changes nothing: it would be one more round. Rounds may lead in a circle, where one
    round rewrites a statement and the next one rewrites it back. Then the smallest text of the circle is taken, so that
    the result does not depend on where the circle was entered.
    """
    texts = [source]
    while True:
        _run_round(search, tracer, backend, first=len(texts) == 1)
        text = format_script(search.tree)
        if text in texts:
            break
        texts.append(text)
        search.begin_round(text, tracer(text))
    circle = [(sort_key(tree, text_of(tree)), tree) for tree in map(parse_python, texts[texts.index(text) :])]
    if len(circle) > 1:
        search.restore(min(circle, key=itemgetter(0))[1])


def _run_round(search: ReductionSearch, tracer: Tracer, backend: str | None, *, first: bool) -> None:
    """Run the opening passes, then the main passes until they change nothing, then the final passes.

    In the first round the final passes run once more before the last, complete turns of the main passes. So those turns
    ask about the texts of the result, and the next round has little to ask.
    """
    for name, run in SCHEDULE.opening:
        before = search.text
        if run is isolate_call.run:
            run = partial(isolate_call.run, backend=backend or isolate_call.backend_of(search.tree))
        _run_pass(search, name, run, None if name in _UNLIMITED or not first else 2 * MOST_FAILURES)
        if search.text != before:
            _retrace(search, tracer)
    if first:
        _repeat_main_passes(search, tracer, MOST_FAILURES)
        _run_final_passes(search)
        _retrace(search, tracer)
    _repeat_main_passes(search, tracer)
    _run_final_passes(search)


def _repeat_main_passes(search: ReductionSearch, tracer: Tracer, most_failures: int | None = None) -> None:
    """Run the main passes until they change nothing or, where they may be suspended, until they remove little."""
    before, nodes = "", search.key.nodes
    while search.text != before:
        before = search.text
        for name, run in SCHEDULE.main:
            _run_pass(search, name, run, most_failures)
        for name, run in SCHEDULE.traced:
            _retrace(search, tracer)
            _run_pass(search, name, run, most_failures)
        if most_failures is not None and search.key.nodes > (1 - LEAST_SHARE) * nodes:
            return
        nodes = search.key.nodes


def _run_final_passes(search: ReductionSearch) -> None:
    for name, run in SCHEDULE.final:
        _run_pass(search, name, run)


def _run_pass(search: ReductionSearch, name: str, run: Pass, most_failures: int | None = None) -> None:
    search.interestingness.begin_pass(name, most_failures)
    try:
        run(search)
    except PassSuspended:
        pass


def _retrace(search: ReductionSearch, tracer: Tracer) -> None:
    """Trace the best script, and give its tree the line numbers of the traced text."""
    text = search.text + "\n"
    found = tracer(text)
    if found is not None:
        search.tree = tidy(parse_python(text))
        search.trace = found


def with_source(reduction: Reduction, text: str) -> Reduction:
    """Return a reduction whose result is another text."""
    size = len(text.encode()), _count_lines(text), count_nodes(parse_python(text))
    return replace(reduction, source=text, bytes=size[0], lines=size[1], nodes=size[2])


def _reduction(source: str, text: str, search: ReductionSearch, *, finished: bool, paid_off: bool = True) -> Reduction:
    test = search.interestingness
    return Reduction(
        source=text,
        bytes=len(text.encode()),
        lines=_count_lines(text),
        nodes=count_nodes(parse_python(text)),
        original_bytes=len(source.encode()),
        original_lines=_count_lines(source),
        original_nodes=count_nodes(parse_python(source)),
        asked=test.asked,
        seconds=test.seconds,
        finished=finished,
        paid_off=paid_off,
        statistics={name: item for name, item in test.statistics.items() if item.asked},
        trajectory=tuple(search.trajectory),
    )


def _count_lines(text: str) -> int:
    return sum(1 for line in text.splitlines() if line.strip())
