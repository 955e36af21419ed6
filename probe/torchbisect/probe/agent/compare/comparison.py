"""Two records side by side: all in which the compiled run differs from the eager one, the most telling first.

The JSON that comes out is read by ``observation.Difference``.
"""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional

from ..capture.aliases import shared_differently
from ..run.fork import Run
from . import records, stdout_diff
from .records import Pair, Side
from .snapshot_diff import Finding, Role, Walk

MOST = 40
END = 1_000_000
_AGREEABLE = ("finished", "exited")


class Comparison(NamedTuple):
    """What came out.

    Attributes:
        findings: most telling first.
        doubtful: whether a floating-point difference was judged without a reference.
    """

    findings: List[Finding]
    doubtful: bool


def compare(eager: Run, compiled: Run, reference: Optional[Run] = None) -> Comparison:
    """Lay two runs side by side.

    Args:
        eager: the run with compile a no-op.
        compiled: the run with compile honoured.
        reference: the eager run in double precision, for floating-point differences.
    """
    walk = Walk()
    thirds = records.events(reference.entries) if reference is not None else []
    lefts, rights = records.events(eager.entries), records.events(compiled.entries)
    inner_left, inner_right = records.inner_events(eager.entries), records.inner_events(compiled.entries)
    calls = backwards = 0
    aligned = True
    for moment, (left, right) in enumerate(zip(lefts, rights)):
        a, b = Side(left), Side(right)
        if (a.facts["e"], a.facts.get("label")) != (b.facts["e"], b.facts.get("label")):
            walk.add(moment, 6, "side-effects", "call {}".format(calls), "order of calls", _named(a), _named(b))
            aligned = False
            break
        third = Side(thirds[moment]) if len(thirds) == len(lefts) else None
        pair = Pair(a, b, third)
        walk.enter(moment, pair)
        if a.facts["e"] == "call":
            number = a.facts["n"]
            pairs = _inner(inner_left.get(number, []), inner_right.get(b.facts["n"], []))
            _call(walk, "call {} ".format(calls), pair, _escaped(compiled, right, rights), _escaped(eager, left, lefts))
            for offset, inside in enumerate(pairs):
                walk.enter(moment, inside)
                _backward(walk, "call {} backward {} ".format(calls, offset), inside)
            calls += 1
        else:
            _backward(walk, "backward {} ".format(backwards), pair)
            backwards += 1
    if aligned:
        _counts(walk, eager, compiled, len(lefts), len(rights))
    _ends(walk, eager, compiled, reference)
    _printing(walk, eager, compiled, reference)
    ranked = sorted(enumerate(walk.findings), key=lambda item: (item[1].weak, item[1].moment, item[1].rank, item[0]))
    return Comparison([finding for _, finding in ranked], walk.doubtful)


def _named(side: Side) -> str:
    return str(side.facts.get("label") or side.facts["e"])


def _inner(left: List[Any], right: List[Any]) -> List[Pair]:
    return [Pair(Side(a), Side(b), None) for a, b in zip(left, right)] if len(left) == len(right) else []


def _escaped(run: Run, entry: Any, every: List[Any]) -> bool:
    """Whether the exception of a call is the one that ended the script: then the ending tells it."""
    inside, outside = entry.facts.get("raised"), run.ending.get("raised")
    return bool(inside and outside and entry is every[-1] and inside["name"] == outside["name"])


def _call(walk: Walk, place: str, pair: Pair, compiled_escaped: bool, eager_escaped: bool) -> None:
    left, right = pair.eager.facts, pair.compiled.facts
    if left.get("raised") or right.get("raised"):
        if not (compiled_escaped or eager_escaped):
            _exceptions(walk, place.strip(), left.get("raised"), right.get("raised"))
        if not (left.get("raised") and right.get("raised")):
            return
    elif "output" in left and "output" in right:
        third = pair.reference.facts.get("output") if pair.reference is not None else None
        walk.nodes(place + "output", left["output"], right["output"], third, Role.OUTPUT)
    hooked = set(left.get("hooked") or ()) | set(right.get("hooked") or ())
    others = dict(right.get("inputs") or ())
    thirds = dict(pair.reference.facts.get("inputs") or ()) if pair.reference is not None else {}
    for name, node in left.get("inputs") or ():
        if name in others:
            role = Role.HOOKED if name in hooked else Role.INPUT
            walk.nodes(place + name, node, others[name], thirds.get(name), role)
    if "output" in left and "output" in right:
        for path, partner, sharing in shared_differently(pair):
            words = ("shared", "not shared") if sharing else ("not shared", "shared")
            walk.add(walk.moment, 5, "aliasing", place + path, "shared storage with " + partner, *words)


def _exceptions(walk: Walk, place: str, left: Optional[Dict[str, Any]], right: Optional[Dict[str, Any]]) -> None:
    if left and right:
        if not _agree(left, right):
            walk.add(walk.moment, 0, "raises-differently", place, "exception", _shown(left), _shown(right))
    elif left:
        walk.add(walk.moment, 0, "missing-raise", place, "exception", _shown(left), "returned")
    else:
        walk.add(walk.moment, 0, "raises", place, "exception", "returned", _shown(right or {}))


def _agree(eager: Dict[str, Any], compiled: Dict[str, Any]) -> bool:
    """Whether the compiled exception passes for the eager one: its class, a subclass, or a wrapper round it.

    Dynamo raises what it met while tracing as ``TorchRuntimeError``, a ``RuntimeError`` that quotes the first one.
    """
    name = eager["name"]
    inner: Optional[Dict[str, Any]] = compiled
    while inner:
        if name == inner["name"] or name in inner["bases"]:
            return True
        inner = inner.get("cause")
    short = name.rpartition(".")[2]
    return "{}(".format(short) in compiled["message"] or "{}:".format(short) in compiled["message"]


def _shown(raised: Dict[str, Any]) -> str:
    first = (raised.get("message") or "").strip().splitlines() or [""]
    return "{}: {}".format(raised.get("name"), first[0])[:300]


def _backward(walk: Walk, place: str, pair: Pair) -> None:
    left, right = pair.eager.facts, pair.compiled.facts
    third = pair.reference.facts if pair.reference is not None else {}
    if len(left["results"]) == len(right["results"]):
        for index, (a, b) in enumerate(zip(left["results"], right["results"])):
            r = third["results"][index] if len(third.get("results", ())) == len(left["results"]) else None
            walk.nodes("{}gradient[{}]".format(place, index), a, b, r, Role.GRADIENT)
    others, thirds = dict(right["leaves"]), dict(third.get("leaves", ()))
    for name, node in left["leaves"]:
        if name in others:
            walk.nodes(place + name, node, others[name], thirds.get(name), Role.GRADIENT)


def _counts(walk: Walk, eager: Run, compiled: Run, left: int, right: int) -> None:
    both = eager.ending["how"] in _AGREEABLE and compiled.ending["how"] in _AGREEABLE
    if both and left != right and not (eager.lost or compiled.lost):
        walk.add(min(left, right), 6, "side-effects", "script", "number of calls", str(left), str(right))


def _ends(walk: Walk, eager: Run, compiled: Run, reference: Optional[Run]) -> None:
    left, right = records.last_word(eager.entries), records.last_word(compiled.entries)
    if left is None or right is None:
        return
    third = records.last_word(reference.entries) if reference is not None else None
    pair = Pair(Side(left), Side(right), Side(third) if third is not None else None)
    walk.enter(END, pair)
    others = dict(pair.compiled.facts["globals"])
    thirds = dict(pair.reference.facts["globals"]) if pair.reference is not None else {}
    hooked = set(left.facts.get("hooked") or ()) | set(right.facts.get("hooked") or ())
    for name, node in pair.eager.facts["globals"]:
        if name in others:
            role = Role.HOOKED if name in hooked else Role.GLOBAL
            walk.nodes("global " + name, node, others[name], thirds.get(name), role)


def _printing(walk: Walk, eager: Run, compiled: Run, reference: Optional[Run]) -> None:
    if compiled.ending["how"] not in _AGREEABLE or eager.ending["how"] not in _AGREEABLE:
        return  # cut short: the lines that are missing tell nothing that the ending doesn't
    third = reference.output if reference is not None else None
    for number, left, right in stdout_diff.different_lines(eager.output, compiled.output, third)[:5]:
        place = "printed line {}".format(number)
        walk.add(END + 1, 9, "side-effects", place, "text", left[:200], right[:200], weak=True)
