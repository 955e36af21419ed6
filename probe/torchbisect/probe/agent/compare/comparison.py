"""Compare the records of two runs and rank their differences, the most telling first.

``observation.Difference`` on the host reads the resulting JSON.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from ..run.fork import Run
from . import records, stdout_diff
from .records import EventPair, EventSide, tensors_in
from .same_exception import is_same_exception
from .snapshot_diff import Category, Difference, SnapshotDiff, ValueRole

END = 1_000_000  # the moment of the script's end, after every event
MAX_PRINTED_LINES = 5
_COMPLETED = ("finished", "exited")
_SEQUENCE = Category("side-effects", 6)
_PRINTED = Category("side-effects", 9)
_ALIASING = Category("aliasing", 5)


class Comparison(NamedTuple):
    """The differences, the most telling first; if ``needs_reference``, one was judged without double precision."""

    differences: List[Difference]
    needs_reference: bool


def compare(eager: Run, compiled: Run, reference: Optional[Run] = None) -> Comparison:
    """Compare two runs event by event; ``reference`` is the eager run in double precision, if there is one."""
    diff = SnapshotDiff()
    _compare_events(diff, eager, compiled, reference)
    _compare_final_states(diff, eager, compiled, reference)
    same_exceptions = _same_exceptions(eager, compiled)
    if not same_exceptions:
        _compare_printed_lines(diff, eager, compiled, reference)
    differences = [item for item in diff.differences if not _quotes(item, same_exceptions)]
    ranked = sorted(differences, key=lambda item: (item.is_secondary, item.moment, item.rank))
    return Comparison(ranked, diff.needs_reference)


def _compare_events(diff: SnapshotDiff, eager: Run, compiled: Run, reference: Optional[Run]) -> None:
    """Compare the events in order, and stop where the runs made different calls."""
    thirds = records.top_level_events(reference.entries) if reference is not None else []
    lefts, rights = records.top_level_events(eager.entries), records.top_level_events(compiled.entries)
    inner_left = records.backwards_inside_calls(eager.entries)
    inner_right = records.backwards_inside_calls(compiled.entries)
    calls = backwards = 0
    for moment, (left, right) in enumerate(zip(lefts, rights)):
        third = EventSide(thirds[moment]) if len(thirds) == len(lefts) else None
        pair = EventPair(EventSide(left), EventSide(right), third)
        a, b = pair.eager.facts, pair.compiled.facts
        diff.enter(moment, pair)
        ended_script = _ended_script(compiled, right, rights) or _ended_script(eager, left, lefts)
        if (a["e"], a.get("label")) != (b["e"], b.get("label")):
            names = str(a.get("label") or a["e"]), str(b.get("label") or b["e"])
            diff.add(_SEQUENCE, "call {}".format(calls), "order of calls", names)
            return
        if a["e"] == "call":
            inner = inner_left.get(a["n"], []), inner_right.get(b["n"], [])
            same_count = len(inner[0]) == len(inner[1])
            _compare_call(diff, "call {} ".format(calls), pair, ended_script)
            for offset, entries in enumerate(zip(*inner) if same_count else ()):
                inner_pair = EventPair(EventSide(entries[0]), EventSide(entries[1]), None)
                diff.enter(moment, inner_pair)
                _compare_backward(diff, "call {} backward {} ".format(calls, offset), inner_pair, ended_script=True)
            calls += 1
        else:
            _compare_backward(diff, "backward {} ".format(backwards), pair, ended_script)
            backwards += 1
    _compare_counts(diff, eager, compiled, len(lefts), len(rights))


def _ended_script(run: Run, entry: Any, entries: List[Any]) -> bool:
    """Return True if the exception of a call also ended the script; the run's ending then reports it."""
    inner, outer = entry.facts.get("raised"), run.ending.get("raised")
    return bool(inner and outer and entry is entries[-1] and inner["name"] == outer["name"])


def _compare_call(diff: SnapshotDiff, place: str, pair: EventPair, ended_script: bool) -> None:
    eager, compiled = pair.eager.facts, pair.compiled.facts
    if eager.get("raised") or compiled.get("raised"):
        if not ended_script:
            _compare_exceptions(diff, place.strip(), eager.get("raised"), compiled.get("raised"))
        if not (eager.get("raised") and compiled.get("raised")):
            return
    elif "output" in eager and "output" in compiled:
        reference = pair.reference.facts.get("output") if pair.reference is not None else None
        diff.compare_nodes(place + "output", eager["output"], compiled["output"], reference, ValueRole.OUTPUT)
    hooked = set(eager.get("hooked") or ()) | set(compiled.get("hooked") or ())
    others = dict(compiled.get("inputs") or ())
    references = dict(pair.reference.facts.get("inputs") or ()) if pair.reference is not None else {}
    for name, node in eager.get("inputs") or ():
        if name in others:
            role = ValueRole.HOOKED if name in hooked else ValueRole.INPUT
            diff.compare_nodes(place + name, node, others[name], references.get(name), role)
    if "output" in eager and "output" in compiled:
        for path, partner, shared_in_eager in _aliasing_differences(pair):
            sides = ("shared", "not shared") if shared_in_eager else ("not shared", "shared")
            # Nobody notices it before somebody writes to that memory, which is a difference of its own.
            diff.add(_ALIASING, place + path, "shared storage with " + partner, sides, is_secondary=True)


def _storages(side: EventSide) -> Tuple[Dict[str, int], Dict[str, int]]:
    """Return the storages of the input tensors and of the output tensors, by the tensors' places."""
    found: Tuple[Dict[str, int], Dict[str, int]] = {}, {}
    for storages, values in zip(found, (side.facts.get("inputs") or (), [("output", side.facts["output"])])):
        for name, node in values:
            for place, index in tensors_in(node, name):
                storage = side.tensors[index].get("storage")
                if storage is not None:
                    storages[place] = storage
    return found


def _partners(inputs: Dict[str, int], outputs: Dict[str, int]) -> Dict[str, Set[str]]:
    """Return, for each output, the places of the inputs and the earlier outputs that share its storage."""
    found: Dict[str, Set[str]] = {}
    earlier = list(inputs.items())
    for place, storage in outputs.items():
        found[place] = {name for name, other in earlier if other == storage}
        earlier.append((place, storage))
    return found


def _aliasing_differences(pair: EventPair) -> Iterator[Tuple[str, str, bool]]:
    """Yield the outputs that share memory with another tensor in one run only.

    Each item is the output's place, the other tensor's place, and True if they share memory in the eager run.
    """
    left, right = _storages(pair.eager), _storages(pair.compiled)
    eager, compiled = _partners(*left), _partners(*right)
    in_both = {*left[0], *left[1]} & {*right[0], *right[1]}
    for place in eager:
        if place in compiled:
            for partner in sorted((eager[place] ^ compiled[place]) & in_both):
                yield place, partner, partner in eager[place]


def _compare_exceptions(
    diff: SnapshotDiff, place: str, eager: Optional[Dict[str, Any]], compiled: Optional[Dict[str, Any]]
) -> None:
    if eager and compiled:
        if not is_same_exception(eager, compiled):
            _add_exceptions(diff, "raises-differently", place, eager, compiled)
    elif eager:
        _add_exceptions(diff, "missing-raise", place, eager, compiled)
    else:
        _add_exceptions(diff, "raises", place, eager, compiled)


def _add_exceptions(
    diff: SnapshotDiff, kind: str, place: str, eager: Optional[Dict[str, Any]], compiled: Optional[Dict[str, Any]]
) -> None:
    sides = _exception_text(eager), _exception_text(compiled)
    diff.add(Category(kind, 0), place, "exception", sides, exceptions=(eager, compiled))


def _exception_text(raised: Optional[Dict[str, Any]]) -> str:
    if raised is None:
        return "returned"
    lines = (raised.get("message") or "").strip().splitlines() or [""]
    return "{}: {}".format(raised.get("name"), lines[0])[:300]


def _compare_backward(diff: SnapshotDiff, place: str, pair: EventPair, ended_script: bool) -> None:
    eager, compiled = pair.eager.facts, pair.compiled.facts
    if eager.get("raised") or compiled.get("raised"):
        if not ended_script:
            _compare_exceptions(diff, place.strip(), eager.get("raised"), compiled.get("raised"))
        return
    reference = pair.reference.facts if pair.reference is not None else {}
    if len(eager["results"]) == len(compiled["results"]):
        for index, (a, b) in enumerate(zip(eager["results"], compiled["results"])):
            has_reference = len(reference.get("results", ())) == len(eager["results"])
            third = reference["results"][index] if has_reference else None
            diff.compare_nodes("{}gradient[{}]".format(place, index), a, b, third, ValueRole.GRADIENT)
    others, references = dict(compiled["leaves"]), dict(reference.get("leaves", ()))
    for name, node in eager["leaves"]:
        if name in others:
            diff.compare_nodes(place + name, node, others[name], references.get(name), ValueRole.GRADIENT)


def _compare_counts(diff: SnapshotDiff, eager: Run, compiled: Run, eager_count: int, compiled_count: int) -> None:
    both = eager.ending["how"] in _COMPLETED and compiled.ending["how"] in _COMPLETED
    if both and eager_count != compiled_count and not (eager.dropped_entries or compiled.dropped_entries):
        diff.moment = min(eager_count, compiled_count)
        diff.add(_SEQUENCE, "script", "number of calls", (str(eager_count), str(compiled_count)))


def _compare_final_states(diff: SnapshotDiff, eager: Run, compiled: Run, reference: Optional[Run]) -> None:
    """Compare the globals that the scripts left."""
    left, right = records.end_entry(eager.entries), records.end_entry(compiled.entries)
    if left is None or right is None:
        return
    third = records.end_entry(reference.entries) if reference is not None else None
    pair = EventPair(EventSide(left), EventSide(right), EventSide(third) if third is not None else None)
    diff.enter(END, pair)
    others = dict(pair.compiled.facts["globals"])
    references = dict(pair.reference.facts["globals"]) if pair.reference is not None else {}
    hooked = set(left.facts.get("hooked") or ()) | set(right.facts.get("hooked") or ())
    for name, node in pair.eager.facts["globals"]:
        if name in others:
            role = ValueRole.HOOKED if name in hooked else ValueRole.GLOBAL
            diff.compare_nodes("global " + name, node, others[name], references.get(name), role)


def _same_exceptions(eager: Run, compiled: Run) -> List[Tuple[str, str]]:
    """Return the first lines of each exception that a call raised in both runs, the eager one and the compiled one.

    A script that prints such an exception prints the wrapper of the compiler and its traceback too. So from there on
    its lines differ although compiled code did what eager code does.
    """
    pairs = zip(records.top_level_events(eager.entries), records.top_level_events(compiled.entries))
    raised = [(left.facts.get("raised"), right.facts.get("raised")) for left, right in pairs]
    both = [(left, right) for left, right in raised if left and right and is_same_exception(left, right)]
    return [(_first_line(left), _first_line(right)) for left, right in both]


def _first_line(raised: Dict[str, Any]) -> str:
    """Return the beginning of a message, short enough to be found in the text of a difference."""
    return ((raised.get("message") or "").strip().splitlines() or [""])[0][:80]


def _quotes(difference: Difference, exceptions: List[Tuple[str, str]]) -> bool:
    """Return True if the two sides of a difference are texts that quote an exception of both runs."""
    sides = str(difference.facts["eager"]), str(difference.facts["compiled"])
    return any(all(line in side for line, side in zip(lines, sides)) for lines in exceptions if all(lines))


def _compare_printed_lines(diff: SnapshotDiff, eager: Run, compiled: Run, reference: Optional[Run]) -> None:
    if compiled.ending["how"] not in _COMPLETED or eager.ending["how"] not in _COMPLETED:
        return  # an output that was cut short adds nothing to the difference in the endings
    diff.moment = END + 1
    third = reference.output if reference is not None else None
    for number, left, right in stdout_diff.different_lines(eager.output, compiled.output, third)[:MAX_PRINTED_LINES]:
        place = "printed line {}".format(number)
        diff.add(_PRINTED, place, "text", (left[:200], right[:200]), is_secondary=True)
