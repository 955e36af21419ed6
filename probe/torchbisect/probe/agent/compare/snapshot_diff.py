"""Compare two snapshots of the same value recursively and collect the differences."""

from __future__ import annotations

import enum
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Set, Tuple

from ..capture.snapshot import Node
from . import tolerance
from .error_histogram import error_charts
from .records import EventPair, EventSide, common_step

MAX_DIFFERENCES = 200
MAX_CHARTS = 3


# The role of a value in a call, which decides the kind of mismatch that a difference is.
ValueRole = enum.Enum("ValueRole", "OUTPUT INPUT GRADIENT GLOBAL HOOKED")


class Category(NamedTuple):
    """The kind of a mismatch, as ``observation.Kind`` names it, and its rank within one event: 0 comes first."""

    kind: str
    rank: int


class Difference(NamedTuple):
    """One difference between two runs, with the fields by which differences are sorted.

    Attributes:
        moment: the number of the event in which it was seen.
        rank: its place among the differences of one event, 0 first.
        is_secondary: it may follow from another difference or be harmless, so it is sorted after all others.
        is_float: it is a difference between floating-point numbers.
        facts: ``observation.Difference`` as JSON.
    """

    moment: int
    rank: int
    is_secondary: bool
    is_float: bool
    facts: Dict[str, Any]


class TensorPair(NamedTuple):
    """The metadata of one tensor in both runs, and in the double-precision run if there is one."""

    eager: Dict[str, Any]
    compiled: Dict[str, Any]
    reference: Optional[Dict[str, Any]]


TYPE_OR_SHAPE = Category("metadata", 1)
_SIDE_EFFECT = Category("side-effects", 6)
_COMMON = {ValueRole.GRADIENT: Category("gradients", 4), ValueRole.HOOKED: Category("hooks", 6)}
_METADATA = {**_COMMON, ValueRole.OUTPUT: TYPE_OR_SHAPE}
_VALUES = {**_COMMON, ValueRole.OUTPUT: Category("values", 2), ValueRole.GLOBAL: Category("values", 4)}
_STATE = {**_VALUES, ValueRole.INPUT: _SIDE_EFFECT, ValueRole.GLOBAL: _SIDE_EFFECT}
_METADATA_FIELDS = ("class", "dtype", "shape", "device", "layout", "requires_grad", "leaf")
_FIELD_NAMES = {"class": "type", "leaf": "is_leaf"}


class SnapshotDiff:
    """Collector of the differences between pairs of nodes.

    Attributes:
        differences: in the order found, at most ``MAX_DIFFERENCES``.
        needs_reference: a floating-point difference was found without a double-precision reference.
        moment: the number of the current event.
    """

    def __init__(self) -> None:
        self.differences: List[Difference] = []
        self.needs_reference = False
        self.moment = 0
        self._pair: Optional[EventPair] = None
        self._charts_left = MAX_CHARTS
        self._compared: Set[Tuple[int, int, ValueRole]] = set()

    def enter(self, moment: int, pair: EventPair) -> None:
        """Set the event whose nodes are compared next."""
        self.moment, self._pair = moment, pair
        self._compared = set()

    def add(
        self,
        category: Category,
        place: str,
        attribute: str,
        sides: Tuple[str, str],
        detail: Optional[Dict[str, Any]] = None,
        is_secondary: bool = False,
        is_float: bool = False,
        exceptions: Tuple[Optional[Dict[str, Any]], Optional[Dict[str, Any]]] = (None, None),
    ) -> None:
        """Add a difference of the current event; further ones are ignored once the maximum is reached.

        Args:
            category: its kind and rank.
            place: where it is, such as ``call 0 output[1]``.
            attribute: the property that differs there, such as ``dtype``.
            sides: the property in the eager and in the compiled run.
            detail: figures about it.
            is_secondary, is_float: see ``Difference``.
            exceptions: the exception of the eager run and of the compiled run, if they differ in that.
        """
        if len(self.differences) < MAX_DIFFERENCES:
            facts: Dict[str, Any] = {"kind": category.kind, "place": place, "attribute": attribute}
            facts.update(eager=sides[0], compiled=sides[1], detail=detail or {})
            facts.update(eager_raised=exceptions[0], compiled_raised=exceptions[1])
            self.differences.append(Difference(self.moment, category.rank, is_secondary, is_float, facts))

    def compare_nodes(
        self, place: str, eager: Node, compiled: Node, reference: Optional[Node], role: ValueRole
    ) -> None:
        """Compare two nodes and everything in them; ``reference`` is the node of the double-precision run."""
        if reference is not None and reference[0] != eager[0]:
            reference = None
        if eager[0] == compiled[0] == "T":
            self._compare_tensors(place, eager[1], compiled[1], reference[1] if reference else None, role)
        elif "R" in (eager[0], compiled[0]) or (eager[0] == compiled[0] == "X" and eager[1] == compiled[1]):
            return
        elif eager[0] != compiled[0] or eager[1] != compiled[1]:
            self._add_structure(place, "type", (_type_name(eager), _type_name(compiled)), role)
        elif eager[0] == "V":
            if eager[2] != compiled[2]:
                self.add(_STATE[role], place, "value", (eager[2][:200], compiled[2][:200]))
        elif eager[0] == "F":
            self._compare_floats(place, eager, compiled, reference, role)
        elif eager[0] == "L":
            self._compare_sequences(place, eager, compiled, reference, role)
        elif eager[0] in "DOM":
            self._compare_mappings(place, eager, compiled, reference, role)

    def _add_structure(self, place: str, attribute: str, sides: Tuple[str, str], role: ValueRole) -> None:
        self.add(TYPE_OR_SHAPE if role is ValueRole.OUTPUT else _STATE[role], place, attribute, sides)

    def _compare_floats(
        self, place: str, eager: Node, compiled: Node, reference: Optional[Node], role: ValueRole
    ) -> None:
        for part in (2, 3):
            exact = float(reference[part]) if reference else None
            if tolerance.numbers_differ(float(eager[part]), float(compiled[part]), exact):
                self.needs_reference |= reference is None
                self.add(_STATE[role], place, "value", (eager[part], compiled[part]), is_float=True)
                return

    def _compare_sequences(
        self, place: str, eager: Node, compiled: Node, reference: Optional[Node], role: ValueRole
    ) -> None:
        if len(eager[2]) != len(compiled[2]):
            self._add_structure(place, "length", (str(len(eager[2])), str(len(compiled[2]))), role)
            return
        has_reference = reference is not None and len(reference[2]) == len(eager[2])
        for index, (a, b) in enumerate(zip(eager[2], compiled[2])):
            # The indices of ``max``, ``sort`` and so on: the compiler may choose another of equal elements.
            if eager[1].startswith("torch.return_types.") and index == 1:
                continue
            third = reference[2][index] if reference and has_reference else None
            self.compare_nodes("{}[{}]".format(place, index), a, b, third, role)

    def _compare_mappings(
        self, place: str, eager: Node, compiled: Node, reference: Optional[Node], role: ValueRole
    ) -> None:
        first, second = dict(eager[2]), dict(compiled[2])
        # Two plain dictionaries are equal whatever the order of their keys, and two ordered ones are not.
        is_ordered = eager[0] == "D" and (role is ValueRole.OUTPUT or eager[1] == "collections.OrderedDict")
        if is_ordered and list(first) != list(second):
            # Another order of the same keys is another bug than keys that are missing.
            attribute = "order of keys" if set(first) == set(second) else "keys"
            self._add_structure(place, attribute, (_keys(eager, first), _keys(compiled, second)), role)
        elif set(first) != set(second):
            sides = (_keys(eager, sorted(first)), _keys(compiled, sorted(second)))
            self._add_structure(place, "keys", sides, role)
        references = dict(reference[2]) if reference is not None else {}
        for name, node in eager[2]:
            if name in second:
                inner = place + ("[{}]" if eager[0] == "D" else ".{}").format(name)
                # Not only hooks write to a module's own tensors, so a difference there is not attributed to hooks.
                is_module_tensor = eager[0] == "M" and node[0] == "T" and role is ValueRole.HOOKED
                inner_role = ValueRole.GLOBAL if is_module_tensor else role
                self.compare_nodes(inner, node, second[name], references.get(name), inner_role)

    def _compare_tensors(
        self, place: str, eager: int, compiled: int, reference: Optional[int], role: ValueRole
    ) -> None:
        pair = self._pair
        if pair is None or (eager, compiled, role) in self._compared:
            return
        self._compared.add((eager, compiled, role))
        first, second = _metadata(pair.eager, eager), _metadata(pair.compiled, compiled)
        if first is None or second is None or "shape" not in first or "shape" not in second:
            return
        third = _metadata(pair.reference, reference) if pair.reference is not None and reference is not None else None
        tensors = TensorPair(first, second, third)
        is_mutated = eager in (pair.eager.facts.get("mutated") or ()) or compiled in (
            pair.compiled.facts.get("mutated") or ()
        )
        differs = self._compare_metadata(place, tensors, role)
        if first["shape"] == second["shape"] and first["dtype"] == second["dtype"]:
            self._compare_elements(place, tensors, role, is_mutated)
            if not differs and role is ValueRole.OUTPUT:
                self._compare_strides(place, tensors)
        if role is not ValueRole.GRADIENT or first.get("grad") is not None:
            self._compare_grads(place, tensors)

    def _compare_metadata(self, place: str, tensors: TensorPair, role: ValueRole) -> bool:
        """Compare the metadata and return True if any of it differs."""
        eager, compiled = tensors.eager, tensors.compiled
        found = False
        for name in _METADATA_FIELDS:
            if eager.get(name) == compiled.get(name):
                continue
            if name == "leaf" and eager["requires_grad"] != compiled["requires_grad"]:
                continue
            category = _METADATA.get(role, Category("metadata", 3))
            self.add(category, place, _FIELD_NAMES.get(name, name), _texts(eager.get(name), compiled.get(name)))
            found = True
        return found

    def _compare_strides(self, place: str, tensors: TensorPair) -> None:
        """Compare contiguity: a stride that leaves it unchanged does not change the uses of the result."""
        eager, compiled = tensors.eager, tensors.compiled
        if 0 in eager["shape"]:
            return
        for name in ("contiguous", "channels_last"):
            if eager.get(name) != compiled.get(name):
                sides = _texts(eager.get("stride"), compiled.get("stride"))
                self.add(Category("metadata", 7), place, "stride", sides, is_secondary=True)
                return

    def _compare_elements(self, place: str, tensors: TensorPair, role: ValueRole, is_mutated: bool) -> None:
        pair = self._pair
        assert pair is not None
        shape, dtype = tensors.eager["shape"], tensors.eager["dtype"]
        step = common_step(tensors.eager, tensors.compiled)
        eager, compiled = pair.eager.elements(tensors.eager, step), pair.compiled.elements(tensors.compiled, step)
        if eager is None or compiled is None or eager.numel() != compiled.numel():
            return
        reference = None
        third = tensors.reference
        if pair.reference is not None and third is not None and third.get("shape") == shape:
            reference = pair.reference.elements(third, step)
        is_float = eager.is_floating_point() or eager.is_complex()
        if is_float:
            found = tolerance.floats_differ(eager, compiled, reference, dtype)
        else:
            found = tolerance.exact_differ(eager, compiled)
        if found is None:
            return
        self.needs_reference |= is_float and reference is None
        position = found.pop("position")
        detail = {"index": tolerance.unravel_index(position * step, shape), "numel": eager.numel(), **found}
        if self._charts_left:
            self._charts_left -= 1
            detail.update(error_charts(eager, compiled, shape, step))
        category = _VALUES.get(role, Category("mutation", 3) if is_mutated else Category("values", 8))
        sides = (_element_text(eager[position].item()), _element_text(compiled[position].item()))
        self.add(category, place, "value", sides, detail=detail, is_float=is_float)

    def _compare_grads(self, place: str, tensors: TensorPair) -> None:
        eager, compiled = tensors.eager.get("grad"), tensors.compiled.get("grad")
        if eager is None and compiled is None:
            return
        if eager is None or compiled is None:
            sides = ("None" if eager is None else "a tensor", "None" if compiled is None else "a tensor")
            self.add(Category("gradients", 4), place + ".grad", "type", sides)
            return
        reference = tensors.reference.get("grad") if tensors.reference is not None else None
        self._compare_tensors(place + ".grad", eager, compiled, reference, ValueRole.GRADIENT)


def _metadata(side: Optional[EventSide], index: int) -> Optional[Dict[str, Any]]:
    return side.tensors[index] if side is not None and 0 <= index < len(side.tensors) else None


def _type_name(node: Node) -> str:
    if node[0] == "T":
        return "Tensor"
    return "None" if node[1] == "NoneType" else str(node[1])


def _keys(node: Node, names: Iterable[str]) -> str:
    """Return keys of a mapping, or names of the attributes of an object, as the text of a list."""
    texts = names if node[0] == "D" else map(repr, names)
    return "[{}]".format(", ".join(texts))[:200]


def _texts(eager: Any, compiled: Any) -> Tuple[str, str]:
    return _text(eager), _text(compiled)


def _text(value: Any) -> str:
    return str(tuple(value)) if isinstance(value, list) else str(value)


def _element_text(value: Any) -> str:
    return format(value, ".6g") if isinstance(value, (float, complex)) else str(value)
