"""Values as they are at one instant, in a form that JSON and bytes can hold.

A snapshot is taken in the child, beside foreign code, and read in the agent, which trusts none of it: nothing is
pickled. Nodes are lists whose first item says what they are:

    ["T", index]                 a tensor, described in the snapshot's table
    ["V", class, text]           None, a bool, a number, a string, a dtype, ...: equal if the texts are
    ["F", class, real, imag]     a floating-point number, compared with a tolerance; the parts are text
    ["L", class, [nodes]]        a sequence; sets are sorted by what their members look like
    ["D", class, [[key, node]]]  a mapping, in its order
    ["O", class, [[name, node]]] an object of the script or a dataclass, by its attributes
    ["M", class, [[name, node]]] a module: parameters, buffers and plain attributes
    ["X", class]                 anything else: only its class counts
    ["R"]                        a container that is already being described further up, or is too deep
"""

from __future__ import annotations

import collections.abc
import ctypes
import dataclasses
import enum
import re
import sys
import types
from typing import Any, Callable, Dict, List, Optional

import torch

from . import raw_tensor

Node = List[Any]

# Beyond these a tensor is sampled; the second stands when the tape is already half full.
WHOLE = 1 << 20
WHOLE_WHEN_FULL = 1 << 14
SAMPLES = 1 << 14
DEEPEST = 12
LONGEST = 2000

_PLAIN = (bool, int, str, bytes, type(None), type(Ellipsis), complex, float)
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{4,}")
_DYNAMO_MARK = ("_torchdynamo", "_torchbisect", "_dynamo", "_compiled_call_impl", "__")


def class_name(value: Any) -> str:
    """The class of a value, with its module unless it is a builtin or the script's own."""
    kind = type(value)
    module = getattr(kind, "__module__", "")
    name = getattr(kind, "__qualname__", kind.__name__)
    return name if module in ("builtins", "__main__") else "{}.{}".format(module, name)


def sample_step(numel: int) -> int:
    """How far apart the sampled elements of a tensor lie: a function of its size alone, so that two runs agree."""
    return max(1, numel // SAMPLES) | 1


class Snapshot:
    """Collects nodes, a table of the tensors in them, and the tensors' bytes.

    Args:
        crowded: whether room is short, so that large tensors are sampled.
        mine: says of a class whether it belongs to the script, whose objects are looked into.
    """

    def __init__(self, mine: Callable[[type], bool], crowded: bool = False) -> None:
        self.tensors: List[Dict[str, Any]] = []
        self.chunks: List[bytes] = []
        self._mine = mine
        self._whole = WHOLE_WHEN_FULL if crowded else WHOLE
        self._offset = 0
        self._seen: Dict[int, int] = {}
        self._storages: Dict[int, int] = {}
        self._path: List[int] = []
        # Tensors described here are kept alive until the snapshot is done, or an address could be used twice.
        self._kept: List[Any] = []
        self._described: List[Any] = []

    def described(self) -> List[Any]:
        """The tensors of the table, in its order."""
        return self._described

    def node(self, value: Any) -> Node:
        """Describe a value. Never raises: what can't be described is opaque."""
        with raw_tensor.looking():
            try:
                return self._node(value)
            except Exception:
                return ["X", _class_or_unknown(value)]

    def _node(self, value: Any) -> Node:
        if isinstance(value, torch.Tensor):
            return ["T", self._tensor(value)]
        if isinstance(value, _PLAIN):
            return _plain(value)
        if isinstance(value, (torch.dtype, torch.device, torch.layout, torch.memory_format, enum.Enum, range, slice)):
            return ["V", class_name(value), str(value)]
        if id(value) in self._path or len(self._path) > DEEPEST:
            return ["R"]
        self._path.append(id(value))
        try:
            return self._container(value)
        finally:
            self._path.pop()

    def _container(self, value: Any) -> Node:
        name = class_name(value)
        if isinstance(value, collections.deque):
            return ["L", "{}(maxlen={})".format(name, value.maxlen), [self._node(item) for item in list(value)]]
        if isinstance(value, (list, tuple)):
            return ["L", name, [self._node(item) for item in list(value)[:10000]]]
        if isinstance(value, (set, frozenset)):
            return ["L", name, sorted((self._node(item) for item in list(value)), key=repr)]
        if isinstance(value, (dict, types.MappingProxyType, collections.abc.Mapping)):
            return ["D", name, [[_key(key), self._node(item)] for key, item in list(value.items())[:10000]]]
        if isinstance(value, torch.nn.Module):
            return self._module(value)
        if isinstance(value, (types.FunctionType, types.MethodType, type, types.ModuleType, torch.optim.Optimizer)):
            return ["X", name]
        if dataclasses.is_dataclass(value) or self._mine(type(value)):
            return ["O", name, self._attributes(value)]
        array = _from_numpy(value)
        return ["X", name] if array is None else ["L", name, [self._node(array)]]

    def _attributes(self, value: Any) -> List[List[Any]]:
        held = dict(getattr(value, "__dict__", {}))
        for kind in type(value).__mro__:
            slots = kind.__dict__.get("__slots__", ())
            for slot in (slots,) if isinstance(slots, str) else slots:
                if hasattr(value, slot):
                    held.setdefault(slot, getattr(value, slot))
        return [[name, self._node(item)] for name, item in list(held.items())[:1000] if _counts(name)]

    def _module(self, module: Any) -> Node:
        module = getattr(module, "_orig_mod", module)
        found = [[name, ["T", self._tensor(item)]] for name, item in module.named_parameters()]
        found += [[name, ["T", self._tensor(item)]] for name, item in module.named_buffers()]
        for path, part in list(module.named_modules())[:500]:
            for name, item in list(part.__dict__.items()):
                plain = isinstance(item, (*_PLAIN, list, dict, set, tuple, collections.deque, torch.Tensor))
                if (
                    plain
                    and _counts(name)
                    and not name.startswith("_")
                    and name not in ("T_destination", "call_super_init")
                ):
                    found.append([path + "." + name if path else name, self._node(item)])
        return ["M", class_name(module), found]

    def _tensor(self, tensor: torch.Tensor) -> int:
        if id(tensor) in self._seen:
            return self._seen[id(tensor)]
        index = self._seen[id(tensor)] = len(self.tensors)
        self._described.append(tensor)
        meta: Dict[str, Any] = {"class": class_name(tensor)}
        self.tensors.append(meta)
        tensor = raw_tensor.unwrapped(tensor)
        raw_tensor.describe(tensor, meta)
        if "shape" not in meta:
            return index
        where = raw_tensor.storage_key(tensor)
        if where is not None:
            meta["storage"] = self._storages.setdefault(where, len(self._storages))
            self._kept.append(tensor)
        data = raw_tensor.strided(tensor)
        if data is not None:
            self._write(data, meta)
        grad = raw_tensor.gradient(tensor)
        meta["grad"] = None if grad is None else self._tensor(grad)
        return index

    def _write(self, data: torch.Tensor, meta: Dict[str, Any]) -> None:
        """Put the elements of a strided CPU tensor into the bytes: all, or evenly spaced samples of a large one."""
        data = data.reshape(-1)
        if data.numel() > self._whole:
            meta["step"] = sample_step(data.numel())
            data = data[:: meta["step"]]
        data = data.contiguous()
        length = data.numel() * data.element_size()
        chunk = ctypes.string_at(data.data_ptr(), length) if length else b""
        meta["data"] = [self._offset, length]
        self.chunks.append(chunk)
        self._offset += length


def _counts(name: Any) -> bool:
    return not (isinstance(name, str) and name.startswith(_DYNAMO_MARK))


def _class_or_unknown(value: Any) -> str:
    try:
        return class_name(value)
    except Exception:
        return "?"


def _plain(value: Any) -> Node:
    name = class_name(value)
    if isinstance(value, (float, complex)):
        return ["F", name, repr(float(value.real)), repr(float(value.imag))]
    if isinstance(value, int) and not isinstance(value, bool):
        return ["V", name, str(int(value)) if abs(value) < 1 << 200 else hex(value)]
    return ["V", name, _ADDRESS.sub("0x", repr(value))[:LONGEST]]


def _key(key: Any) -> str:
    if isinstance(key, torch.Tensor):
        return "a tensor"
    return _ADDRESS.sub("0x", key if isinstance(key, str) else repr(key))[:200]


def _from_numpy(value: Any) -> Optional[Any]:
    """A numpy array as a tensor, a numpy scalar as a Python one; ``None`` for anything else."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    try:
        if isinstance(value, numpy.generic):
            return value.item()
        if isinstance(value, numpy.ndarray):
            return torch.from_numpy(numpy.array(value))
    except (TypeError, ValueError):
        pass
    return None
