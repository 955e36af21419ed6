"""Which outputs of a call share memory with its inputs and with each other."""

from __future__ import annotations

from typing import Dict, Iterator, List, Set, Tuple

from ..compare.records import Pair, Side, tensors_in


def _storages(side: Side) -> Tuple[Dict[str, int], Dict[str, int]]:
    inputs: Dict[str, int] = {}
    outputs: Dict[str, int] = {}
    for name, node in side.facts.get("inputs") or ():
        for place, index in tensors_in(node, name):
            storage = side.tensors[index].get("storage")
            if storage is not None:
                inputs[place] = storage
    for place, index in tensors_in(side.facts["output"], "output"):
        storage = side.tensors[index].get("storage")
        if storage is not None:
            outputs[place] = storage
    return inputs, outputs


def _partners(inputs: Dict[str, int], outputs: Dict[str, int]) -> Dict[str, Set[str]]:
    found: Dict[str, Set[str]] = {}
    earlier: List[Tuple[str, int]] = []
    for place, storage in outputs.items():
        found[place] = {name for name, other in inputs.items() if other == storage}
        found[place] |= {name for name, other in earlier if other == storage}
        earlier.append((place, storage))
    return found


def shared_differently(pair: Pair) -> Iterator[Tuple[str, str, bool]]:
    """Outputs that share memory with something in one run only: their place, the partner, whether eager shares."""
    left_in, left_out = _storages(pair.eager)
    right_in, right_out = _storages(pair.compiled)
    left, right = _partners(left_in, left_out), _partners(right_in, right_out)
    for place in left_out:
        if place not in right:
            continue
        known = (set(left_in) | set(left_out)) & (set(right_in) | set(right_out))
        for partner in sorted((left[place] ^ right[place]) & known):
            yield place, partner, partner in left[place]
