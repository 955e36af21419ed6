"""Two snapshots of one thing, walked together down to what differs."""

from __future__ import annotations

import enum
from typing import Any, Dict, List, NamedTuple, Optional

from . import tolerance
from .error_histogram import picture
from .records import Pair, Side, common_step

Node = List[Any]
MOST = 200
PICTURES = 3


class Role(enum.Enum):
    """What a value is to the call: decides which kind of mismatch a difference is."""

    OUTPUT = "output"
    INPUT = "input"
    GRADIENT = "gradient"
    GLOBAL = "global"
    HOOKED = "hooked"


class Finding(NamedTuple):
    """A difference, and where it comes in the order.

    Attributes:
        moment: when it was seen, as an event's number.
        rank: how telling it is among those of one moment, 0 the most.
        weak: it may well follow from another one, or matter to nobody, so it comes after all the others.
        number: it is a difference between floating-point numbers.
        facts: ``observation.Difference`` as JSON.
    """

    moment: int
    rank: int
    weak: bool
    number: bool
    facts: Dict[str, Any]


_VALUE_KIND = {
    Role.OUTPUT: ("values", 2),
    Role.GRADIENT: ("gradients", 4),
    Role.GLOBAL: ("values", 4),
    Role.HOOKED: ("hooks", 6),
}
_META_KIND = {
    Role.OUTPUT: ("metadata", 1),
    Role.GRADIENT: ("gradients", 4),
    Role.HOOKED: ("hooks", 6),
}
_STATE_KIND = {
    Role.OUTPUT: ("values", 2),
    Role.GRADIENT: ("gradients", 4),
    Role.INPUT: ("side-effects", 6),
    Role.GLOBAL: ("side-effects", 6),
    Role.HOOKED: ("hooks", 6),
}
_META = ("class", "dtype", "shape", "device", "layout", "requires_grad", "leaf")
_META_NAMES = {"class": "type", "leaf": "is_leaf"}


class Walk:
    """Goes through pairs of nodes and collects findings."""

    def __init__(self) -> None:
        self.findings: List[Finding] = []
        self.doubtful = False
        self.moment = 0
        self._pair: Optional[Pair] = None
        self._pictures = PICTURES
        self._done: set = set()

    def enter(self, moment: int, pair: Pair) -> None:
        """From now on nodes are of this pair of entries."""
        self.moment, self._pair = moment, pair
        self._done = set()

    def add(
        self,
        moment: int,
        rank: int,
        kind: str,
        place: str,
        attribute: str,
        eager: str,
        compiled: str,
        detail: Optional[Dict[str, Any]] = None,
        weak: bool = False,
        number: bool = False,
    ) -> None:
        """Put down a difference."""
        if len(self.findings) < MOST:
            facts = {
                "kind": kind,
                "place": place,
                "attribute": attribute,
                "eager": eager,
                "compiled": compiled,
                "detail": detail or {},
            }
            self.findings.append(Finding(moment, rank, weak, number, facts))

    # Nodes ----------------------------------------------------------------------------------------------------------

    def nodes(self, place: str, left: Node, right: Node, third: Optional[Node], role: Role) -> None:
        """Compare two nodes; ``third`` is the same of the double-precision run."""
        if third is not None and third[0] != left[0]:
            third = None
        if left[0] == right[0] == "T":
            self._tensors(place, left[1], right[1], third[1] if third else None, role)
        elif "R" in (left[0], right[0]) or (left[0] == right[0] == "X" and left[1] == right[1]):
            return
        elif left[0] != right[0] or left[1] != right[1]:
            self._structure(place, "type", _told(left), _told(right), role)
        elif left[0] == "V":
            if left[2] != right[2]:
                kind, rank = _STATE_KIND[role]
                self.add(self.moment, rank, kind, place, "value", left[2][:200], right[2][:200])
        elif left[0] == "F":
            self._float(place, left, right, third, role)
        elif left[0] == "L":
            self._sequence(place, left, right, third, role)
        elif left[0] in "DOM":
            self._named(place, left, right, third, role)

    def _structure(self, place: str, attribute: str, left: str, right: str, role: Role) -> None:
        if role is Role.OUTPUT:
            self.add(self.moment, 1, "metadata", place, attribute, left, right)
        else:
            kind, rank = _STATE_KIND[role]
            self.add(self.moment, rank, kind, place, attribute, left, right)

    def _float(self, place: str, left: Node, right: Node, third: Optional[Node], role: Role) -> None:
        for part in (2, 3):
            reference = float(third[part]) if third else None
            if tolerance.numbers_differ(float(left[part]), float(right[part]), reference):
                kind, rank = _STATE_KIND[role]
                self.doubtful |= third is None
                self.add(self.moment, rank, kind, place, "value", left[part], right[part], number=True)
                return

    def _sequence(self, place: str, left: Node, right: Node, third: Optional[Node], role: Role) -> None:
        if len(left[2]) != len(right[2]):
            self._structure(place, "length", str(len(left[2])), str(len(right[2])), role)
            return
        same = third is not None and len(third[2]) == len(left[2])
        for index, (a, b) in enumerate(zip(left[2], right[2])):
            # Among equal maxima the compiler may pick another one than eager does.
            if left[1].startswith("torch.return_types.") and index == 1:
                continue
            self.nodes("{}[{}]".format(place, index), a, b, third[2][index] if third and same else None, role)

    def _named(self, place: str, left: Node, right: Node, third: Optional[Node], role: Role) -> None:
        first, second = dict(left[2]), dict(right[2])
        if role is Role.OUTPUT and left[0] == "D" and list(first) != list(second):
            self._structure(place, "keys", str(list(first))[:200], str(list(second))[:200], role)
        elif set(first) != set(second):
            self._structure(place, "keys", str(sorted(first))[:200], str(sorted(second))[:200], role)
        others = dict(third[2]) if third is not None else {}
        for name, node in left[2]:
            if name in second:
                inner = place + ("[{!r}]" if left[0] == "D" else ".{}").format(name)
                # What a hook writes into is plain state; a module's own tensors are the work of more than its hooks.
                own = left[0] == "M" and node[0] == "T" and role is Role.HOOKED
                self.nodes(inner, node, second[name], others.get(name), Role.GLOBAL if own else role)

    # Tensors --------------------------------------------------------------------------------------------------------

    def _tensors(self, place: str, left: int, right: int, third: Optional[int], role: Role) -> None:
        pair = self._pair
        if pair is None or (left, right, role) in self._done:
            return
        self._done.add((left, right, role))
        first, second = _meta(pair.eager, left), _meta(pair.compiled, right)
        if first is None or second is None or "shape" not in first or "shape" not in second:
            return
        reference = _meta(pair.reference, third) if pair.reference is not None and third is not None else None
        mutated = left in (pair.eager.facts.get("mutated") or ()) or right in (pair.compiled.facts.get("mutated") or ())
        differs = self._attributes(place, first, second, role)
        if first["shape"] == second["shape"] and first["dtype"] == second["dtype"]:
            self._elements(place, first, second, reference, role, mutated)
            if not differs and role is Role.OUTPUT:
                self._strides(place, first, second)
        if role is not Role.GRADIENT or first.get("grad") is not None:
            self._gradient(place, first, second, reference)

    def _attributes(self, place: str, first: Dict[str, Any], second: Dict[str, Any], role: Role) -> bool:
        found = False
        for name in _META:
            if first.get(name) == second.get(name):
                continue
            if name == "leaf" and first["requires_grad"] != second["requires_grad"]:
                continue
            kind, rank = _META_KIND.get(role, ("metadata", 3))
            words = (_written(first.get(name)), _written(second.get(name)))
            self.add(self.moment, rank, kind, place, _META_NAMES.get(name, name), *words)
            found = True
        return found

    def _strides(self, place: str, first: Dict[str, Any], second: Dict[str, Any]) -> None:
        """A stride counts where it changes what the result can be used for: contiguous in one run only."""
        if 0 in first["shape"]:
            return
        for name in ("contiguous", "channels_last"):
            if first.get(name) != second.get(name):
                words = (_written(first.get("stride")), _written(second.get("stride")))
                self.add(self.moment, 7, "metadata", place, "stride", *words, weak=True)
                return

    def _elements(
        self,
        place: str,
        first: Dict[str, Any],
        second: Dict[str, Any],
        reference: Optional[Dict[str, Any]],
        role: Role,
        mutated: bool,
    ) -> None:
        pair = self._pair
        assert pair is not None
        step = common_step(first, second)
        a, b = pair.eager.elements(first, step), pair.compiled.elements(second, step)
        if a is None or b is None or a.numel() != b.numel():
            return
        r = None
        if pair.reference is not None and reference is not None and reference.get("shape") == first["shape"]:
            r = pair.reference.elements(reference, step)
        number = a.is_floating_point() or a.is_complex()
        found = tolerance.floats_differ(a, b, r, first["dtype"]) if number else tolerance.exact_differ(a, b)
        if found is None:
            return
        self.doubtful |= number and r is None
        position = found.pop("position")
        detail = {"index": tolerance.unravelled(position * step, first["shape"]), "numel": a.numel(), **found}
        if self._pictures:
            self._pictures -= 1
            detail.update(picture(a, b, first["shape"], step))
        kind, rank = _VALUE_KIND.get(role, ("mutation", 3) if mutated else ("values", 8))
        words = (_element(a[position].item()), _element(b[position].item()))
        self.add(self.moment, rank, kind, place, "value", *words, detail=detail, number=number)

    def _gradient(
        self, place: str, first: Dict[str, Any], second: Dict[str, Any], reference: Optional[Dict[str, Any]]
    ) -> None:
        left, right = first.get("grad"), second.get("grad")
        if left is None and right is None:
            return
        if left is None or right is None:
            words = ("None" if left is None else "a tensor", "None" if right is None else "a tensor")
            self.add(self.moment, 4, "gradients", place + ".grad", "type", *words)
            return
        third = reference.get("grad") if reference is not None else None
        self._tensors(place + ".grad", left, right, third, Role.GRADIENT)


def _meta(side: Optional[Side], index: int) -> Optional[Dict[str, Any]]:
    return side.tensors[index] if side is not None and 0 <= index < len(side.tensors) else None


def _told(node: Node) -> str:
    if node[0] == "T":
        return "Tensor"
    return "None" if node[1] == "NoneType" else str(node[1])


def _written(value: Any) -> str:
    return str(tuple(value)) if isinstance(value, list) else str(value)


def _element(value: Any) -> str:
    return format(value, ".6g") if isinstance(value, (float, complex)) else str(value)
