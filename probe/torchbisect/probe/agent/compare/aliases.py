"""Compare aliasing: the outputs of a call that share memory with its inputs or with each other."""

from __future__ import annotations

from typing import Dict, Iterator, List, Set, Tuple

from .records import EventPair, EventSide, tensors_in


def _storages(side: EventSide) -> Tuple[Dict[str, int], Dict[str, int]]:
    """Return the storages of the input tensors and of the output tensors, by the tensors' places."""
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
    """Return, for each output, the places of the inputs and the earlier outputs that share its storage."""
    found: Dict[str, Set[str]] = {}
    earlier: List[Tuple[str, int]] = []
    for place, storage in outputs.items():
        found[place] = {name for name, other in inputs.items() if other == storage}
        found[place] |= {name for name, other in earlier if other == storage}
        earlier.append((place, storage))
    return found


def aliasing_differences(pair: EventPair) -> Iterator[Tuple[str, str, bool]]:
    """Yield the outputs that share memory with another tensor in one run only.

    Each item is the output's place, the other tensor's place, and True if they share memory in the eager run.
    """
    eager_inputs, eager_outputs = _storages(pair.eager)
    compiled_inputs, compiled_outputs = _storages(pair.compiled)
    eager = _partners(eager_inputs, eager_outputs)
    compiled = _partners(compiled_inputs, compiled_outputs)
    for place in eager_outputs:
        if place not in compiled:
            continue
        in_both = (set(eager_inputs) | set(eager_outputs)) & (set(compiled_inputs) | set(compiled_outputs))
        for partner in sorted((eager[place] ^ compiled[place]) & in_both):
            yield place, partner, partner in eager[place]
