"""Copy values, as they are at one instant, to JSON and bytes.

A snapshot is taken in the child, beside untrusted code, and read in the agent. Nothing is pickled, because the agent
must not trust what it reads. A node is a list whose first item names its type:

    ["T", index]                 a tensor, by its index in the snapshot's tensor table
    ["V", class, text]           None, a bool, a number, a string, a dtype, ...: equal if the texts are equal
    ["F", class, real, imag]     a floating-point number, compared with a tolerance; the parts are text
    ["L", class, [nodes]]        a sequence; the members of a set are sorted by their nodes
    ["D", class, [[key, node]]]  a mapping, in its order; a key is its ``repr``
    ["O", class, [[name, node]]] an object of a script's class or a dataclass, by its attributes
    ["M", class, [[name, node]]] a module: parameters, buffers, plain attributes and objects as above
    ["X", class]                 any other object: only the class is compared
    ["R"]                        a container that contains itself, or is nested too deeply
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

# A tensor with more elements is sampled. The second limit applies when the tape is already half full.
MAX_WHOLE = 1 << 20
MAX_WHOLE_WHEN_CROWDED = 1 << 14
SAMPLES = 1 << 14
MAX_DEPTH = 12
MAX_TEXT = 2000

_SCALARS = (bool, int, str, bytes, type(None), type(Ellipsis), complex, float)
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{4,}")
_INTERNAL_PREFIXES = ("_torchdynamo", "_torchbisect", "_dynamo", "_compiled_call_impl", "__")


def class_name(value: Any) -> str:
    """Return the name of a value's class, with its module unless it is a builtin or a script's class."""
    kind = type(value)
    module = getattr(kind, "__module__", "")
    name = getattr(kind, "__qualname__", kind.__name__)
    return name if module in ("builtins", "__main__") else "{}.{}".format(module, name)


def sample_step(numel: int) -> int:
    """Return the distance between sampled elements: odd, and the same in all runs, as only ``numel`` determines it."""
    return max(1, numel // SAMPLES) | 1


class Snapshot:
    """Collector of nodes, of the tensors in them (``recorded``), and of their metadata and bytes.

    Args:
        is_user_class: returns True for a class of the script; its objects are recorded by their attributes.
        crowded: the tape has little room, so smaller tensors are sampled too.
    """

    def __init__(self, is_user_class: Callable[[type], bool], crowded: bool = False) -> None:
        self.tensors: List[Dict[str, Any]] = []
        self.chunks: List[bytes] = []
        self._is_user_class = is_user_class
        self._max_whole = MAX_WHOLE_WHEN_CROWDED if crowded else MAX_WHOLE
        self._offset = 0
        self._seen: Dict[int, int] = {}
        self._storages: Dict[int, int] = {}
        self._path: List[int] = []
        # Tensors are kept alive until the snapshot is complete. Otherwise a new storage could get the same address.
        self._keep_alive: List[Any] = []
        self.recorded: List[Any] = []

    def node(self, value: Any) -> Node:
        """Return the node of a value. A value that cannot be read becomes an ``X`` node; nothing is raised."""
        with raw_tensor.without_dispatch():
            try:
                return self._node(value)
            except Exception:
                try:
                    return ["X", class_name(value)]
                except Exception:
                    return ["X", "?"]

    def _node(self, value: Any) -> Node:
        if isinstance(value, torch.Tensor):
            return ["T", self._tensor(value)]
        if isinstance(value, _SCALARS):
            return _scalar(value)
        if isinstance(value, (torch.dtype, torch.device, torch.layout, torch.memory_format, enum.Enum, range, slice)):
            return ["V", class_name(value), str(value)]
        if id(value) in self._path or len(self._path) > MAX_DEPTH:
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
            return ["D", name, [[_key_text(key), self._node(item)] for key, item in list(value.items())[:10000]]]
        if isinstance(value, torch.nn.Module):
            return self._module(value)
        if isinstance(value, (types.FunctionType, types.MethodType, type, types.ModuleType, torch.optim.Optimizer)):
            return ["X", name]
        if self._is_object(value):
            return ["O", name, self._attributes(value)]
        array = _from_numpy(value)
        return ["X", name] if array is None else ["L", name, [self._node(array)]]

    def _is_object(self, value: Any) -> bool:
        """Return True for an object that is recorded by its attributes."""
        return dataclasses.is_dataclass(value) or self._is_user_class(type(value))

    def _attributes(self, value: Any) -> List[List[Any]]:
        held = dict(getattr(value, "__dict__", {}))
        for kind in type(value).__mro__:
            slots = kind.__dict__.get("__slots__", ())
            for slot in (slots,) if isinstance(slots, str) else slots:
                if hasattr(value, slot):
                    held.setdefault(slot, getattr(value, slot))
        return [[name, self._node(item)] for name, item in list(held.items())[:1000] if _is_user_attribute(name)]

    def _module(self, module: Any) -> Node:
        module = getattr(module, "_orig_mod", module)
        found = [[name, ["T", self._tensor(item)]] for name, item in module.named_parameters()]
        found += [[name, ["T", self._tensor(item)]] for name, item in module.named_buffers()]
        for path, part in list(module.named_modules())[:500]:
            for name, item in list(part.__dict__.items()):
                is_plain = isinstance(item, (*_SCALARS, list, dict, set, tuple, collections.deque, torch.Tensor))
                is_state = is_plain or (self._is_object(item) and not isinstance(item, (type, torch.nn.Module)))
                if is_state and not name.startswith("_") and name not in ("T_destination", "call_super_init"):
                    found.append([path + "." + name if path else name, self._node(item)])
        return ["M", class_name(module), found]

    def _tensor(self, tensor: torch.Tensor) -> int:
        if id(tensor) in self._seen:
            return self._seen[id(tensor)]
        index = self._seen[id(tensor)] = len(self.tensors)
        self.recorded.append(tensor)
        meta: Dict[str, Any] = {"class": class_name(tensor)}
        self.tensors.append(meta)
        tensor = raw_tensor.unwrap_functorch(tensor)
        raw_tensor.read_metadata(tensor, meta)
        if "shape" not in meta:
            return index
        storage = raw_tensor.storage_key(tensor)
        if storage is not None:
            meta["storage"] = self._storages.setdefault(storage, len(self._storages))
            self._keep_alive.append(tensor)
        data = raw_tensor.dense_on_cpu(tensor)
        if data is not None:
            self._write(data, meta)
        grad = raw_tensor.read_grad(tensor)
        meta["grad"] = None if grad is None else self._tensor(grad)
        return index

    def _write(self, data: torch.Tensor, meta: Dict[str, Any]) -> None:
        """Append the elements of a strided CPU tensor to the bytes: all, or evenly spaced samples of a large one."""
        data = data.reshape(-1)
        if data.numel() > self._max_whole:
            meta["step"] = sample_step(data.numel())
            data = data[:: meta["step"]]
        data = data.contiguous()
        length = data.numel() * data.element_size()
        chunk = ctypes.string_at(data.data_ptr(), length) if length else b""
        meta["data"] = [self._offset, length]
        self.chunks.append(chunk)
        self._offset += length


def _is_user_attribute(name: Any) -> bool:
    return not (isinstance(name, str) and name.startswith(_INTERNAL_PREFIXES))


def _scalar(value: Any) -> Node:
    name = class_name(value)
    if isinstance(value, (float, complex)):
        return ["F", name, repr(float(value.real)), repr(float(value.imag))]
    if isinstance(value, int) and not isinstance(value, bool):
        return ["V", name, str(int(value)) if abs(value) < 1 << 200 else hex(value)]
    return ["V", name, _ADDRESS.sub("0x", repr(value))[:MAX_TEXT]]


def _key_text(key: Any) -> str:
    if isinstance(key, torch.Tensor):
        return "a tensor"
    return _ADDRESS.sub("0x", str.__repr__(key) if isinstance(key, str) else repr(key))[:200]


def _from_numpy(value: Any) -> Optional[Any]:
    """Return a numpy array as a tensor and a numpy scalar as a Python number; ``None`` for any other value."""
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
