"""Write values as expressions that create the same values in a new script."""

from __future__ import annotations

import argparse
import collections
import dataclasses
import enum
import inspect
import math
import types
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch
import torch.func

from ..capture import raw_tensor
from .tensor_source import tensor_expression

MAX_LENGTH = 400
MAX_LENGTH_BY_VALUE = 4000
MAX_ITEMS = 40
MAX_DEPTH = 6
_VARIABLE_ARGUMENTS = 0x04 | 0x08  # CO_VARARGS, CO_VARKEYWORDS


class Expression(NamedTuple):
    """The source text of an expression. ``exact`` is False if it gives only a value of the same type and shape."""

    text: str
    exact: bool


class ExpressionWriter:
    """Writer of expressions that use torch and the script's globals (``namespace``), read anew for each expression.

    No expression has the path of one of the ``private_folders``, which exist during one run only.
    """

    def __init__(self, namespace: Dict[str, Any], private_folders: Sequence[str] = ()) -> None:
        self._namespace = namespace
        self._private_folders = private_folders
        self._constructed: Dict[int, Tuple[Any, Optional[Expression]]] = {}
        self._in_progress: List[int] = []
        self._by_value = False

    def write_by_value(self, value: Any) -> Optional[Expression]:
        """Return an expression in which tensors have the same numbers, also where these look random."""
        self._by_value = True
        try:
            return self.write(value)
        finally:
            self._by_value = False

    def write(self, value: Any) -> Optional[Expression]:
        """Return an expression for a value; ``None`` if none is known or it is too long."""
        try:
            with raw_tensor.without_dispatch():
                found = self._write(value, 0)
        except Exception:
            return None
        if found is None or len(found.text) > (MAX_LENGTH_BY_VALUE if self._by_value else MAX_LENGTH):
            return None
        return None if any(folder in found.text for folder in self._private_folders) else found

    def note_constructor(self, instance: Any, arguments: Dict[str, Any]) -> None:
        """Note the arguments of an object's ``__init__``. The first call, of the outermost class, is the one kept."""
        if id(instance) in self._constructed and self._constructed[id(instance)][0] is instance:
            return
        # The object is kept alive; otherwise another object could get the same ``id``.
        self._constructed[id(instance)] = (instance, None)
        self._constructed[id(instance)] = (instance, self._constructor_call(type(instance), arguments))

    def note_made(self, value: Any, function: Any, arguments: Sequence[Optional[str]]) -> None:
        """Note the call that made a function or class inside a function of the script, such as a decorator's.

        It has no name of its own, so the call is what gives another one.
        """
        name = self._name_of(function)
        if name is not None and None not in arguments and self._name_of(value) is None:
            text = "{}({})".format(name, ", ".join(map(str, arguments)))
            self._constructed[id(value)] = (value, Expression(text, False))

    def _write(self, value: Any, depth: int) -> Optional[Expression]:
        if depth > MAX_DEPTH:
            return None
        if isinstance(value, float):
            return Expression(repr(value) if math.isfinite(value) else 'float("{}")'.format(value), True)
        if value is None or value is Ellipsis or type(value) in (bool, int, str, bytes, complex, range, slice):
            return Expression("..." if value is Ellipsis else repr(value), True)
        if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
            return Expression(str(value), True)
        if isinstance(value, torch.device):
            return Expression(repr(value).replace("device(", "torch.device(", 1), True)
        if isinstance(value, torch.Tensor):
            written = tensor_expression(value, by_value=self._by_value)
            return Expression(*written) if written else None
        if isinstance(value, enum.Enum):
            owner = self._name_of(type(value))
            return Expression("{}.{}".format(owner, value.name), True) if owner else None
        if isinstance(value, torch.nn.Module):
            return self._module(value)
        if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
            return self._definition(value)
        if isinstance(value, types.GeneratorType):
            return self._generator(value, depth)
        return self._container(value, depth) or self._object(value, depth)

    def _container(self, value: Any, depth: int) -> Optional[Expression]:
        if isinstance(value, torch.Size):
            return Expression("torch.Size({!r})".format(list(value)), True)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            owner, inner = self._name_of(type(value)), self._items(value, depth)
            return Expression("{}({})".format(owner, inner.text), inner.exact) if owner and inner else None
        if type(value) is dict:
            keys, held = self._items(value.keys(), depth, "\0"), self._items(value.values(), depth, "\0")
            if keys is None or held is None or not keys.exact:
                return None
            pairs = zip(keys.text.split("\0"), held.text.split("\0")) if value else ()
            return Expression("{%s}" % ", ".join("{}: {}".format(*pair) for pair in pairs), held.exact)
        formats: Dict[type, str] = {list: "[{}]", tuple: "({})", set: "{{{}}}", frozenset: "frozenset({{{}}})"}
        if type(value) in formats:
            if not value and isinstance(value, (set, frozenset)):
                return Expression(type(value).__name__ + "()", True)
            members = sorted(value, key=repr) if isinstance(value, (set, frozenset)) else value
            inner = self._items(members, depth)
            if inner is None:
                return None
            comma = "," if type(value) is tuple and len(value) == 1 else ""
            return Expression(formats[type(value)].format(inner.text + comma), inner.exact)
        if type(value) in (collections.OrderedDict, collections.Counter) or self._is_own_dictionary(value):
            inner, default = self._container(dict(value), depth), "collections." + type(value).__name__
            owner = self._name_of(type(value)) or default
            return Expression("{}({})".format(owner, inner.text if value else ""), inner.exact) if inner else None
        if type(value) is collections.defaultdict:
            made, inner = self._write(value.default_factory, depth), self._container(dict(value), depth)
            if made is None or inner is None:
                return None
            owner = self._name_of(type(value)) or "collections.defaultdict"
            return Expression("{}({}, {})".format(owner, made.text, inner.text), inner.exact)
        if type(value) is collections.deque:
            inner = self._items(value, depth)
            bound = "" if value.maxlen is None else ", maxlen={}".format(value.maxlen)
            owner = self._name_of(type(value)) or "collections.deque"
            return Expression("{}([{}]{})".format(owner, inner.text, bound), inner.exact) if inner else None
        return None

    def _generator(self, value: Any, depth: int) -> Optional[Expression]:
        """Return the call that made a generator of the script, if that has not begun."""
        code: Any = value.gi_code
        state = inspect.getgeneratorstate(value)
        if state != inspect.GEN_CREATED or value.gi_frame is None or code.co_flags & _VARIABLE_ARGUMENTS:
            return None
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        given = [value.gi_frame.f_locals[name] for name in names]
        function: Any = self._namespace.get(code.co_name)
        owner = ""
        if given and code.co_name in vars(type(given[0])):
            made = self._write(given[0], depth + 1)
            if made is None:
                return None
            function, owner, given, names = getattr(type(given[0]), code.co_name), made.text + ".", given[1:], names[1:]
        if getattr(function, "__code__", None) != code:
            return None
        texts = self._items(given, depth, "\0")
        if texts is None:
            return None
        first_by_name = len(given) - code.co_kwonlyargcount
        written = [
            "{}={}".format(name, text) if place >= first_by_name else text
            for place, (name, text) in enumerate(zip(names, texts.text.split("\0")))
        ]
        return Expression("{}{}({})".format(owner, code.co_name, ", ".join(written)), False)

    def _is_own_dictionary(self, value: Any) -> bool:
        """Return True for an object of a class of the script that is made as a dictionary is, with nothing beside."""
        kind = type(value)
        plain = isinstance(value, dict) and kind.__module__ == "__main__" and kind.__init__ is dict.__init__
        return plain and not vars(value) and self._name_of(kind) is not None

    def _items(self, values: Any, depth: int, separator: str = ", ") -> Optional[Expression]:
        found = []
        for value in list(values)[: MAX_ITEMS + 1]:
            item = self._write(value, depth + 1)
            if item is None:
                return None
            found.append(item)
        if len(found) > MAX_ITEMS:
            return None
        return Expression(separator.join(item.text for item in found), all(item.exact for item in found))

    def _object(self, value: Any, depth: int) -> Optional[Expression]:
        if id(value) in self._in_progress:
            return None
        self._in_progress.append(id(value))
        try:
            if dataclasses.is_dataclass(value):
                return self._dataclass(value, depth)
            held = self._constructed.get(id(value))
            if held is not None and held[0] is value:
                return held[1]
            kind: Any = type(value)
            if kind in (argparse.Namespace, types.SimpleNamespace):
                return self._namespace_object(value, depth)
            plain = kind.__init__ is object.__init__ and kind.__new__ is object.__new__
            if plain and self._name_of(kind) and kind.__module__ == "__main__":
                return Expression(str(self._name_of(kind)) + "()", not getattr(value, "__dict__", None))
            return self._reduced(value, depth)
        finally:
            self._in_progress.pop()

    def _reduced(self, value: Any, depth: int) -> Optional[Expression]:
        """Return the call by which pickle makes a value of a library: ``Fraction('1/2')``, ``Decimal('0.1')``."""
        kind: Any = type(value)
        if kind.__module__ == "__main__" or kind.__reduce__ is object.__reduce__:
            return None
        made: Any = value.__reduce__()
        if not isinstance(made, tuple) or len(made) != 2 or made[0] is not kind:
            return None
        owner, inner = self._name_of(kind), self._items(made[1], depth)
        return Expression("{}({})".format(owner, inner.text), inner.exact) if owner and inner else None

    def _dataclass(self, value: Any, depth: int) -> Optional[Expression]:
        owner = self._name_of(type(value))
        if owner is None:
            return None
        written, exact = [], True
        for field in dataclasses.fields(value):
            if not field.init or _is_default(field, getattr(value, field.name, None)):
                continue
            inner = self._write(getattr(value, field.name), depth + 1)
            if inner is None:
                return None
            written.append("{}={}".format(field.name, inner.text))
            exact &= inner.exact
        return Expression("{}({})".format(owner, ", ".join(written)), exact)

    def _namespace_object(self, value: Any, depth: int) -> Optional[Expression]:
        """Return an expression for an object that has only attributes, such as ``types.SimpleNamespace``."""
        owner, texts = self._name_of(type(value)), self._items(vars(value).values(), depth, "\0")
        if owner is None or texts is None or not all(name.isidentifier() for name in vars(value)):
            return None
        pairs = zip(vars(value), texts.text.split("\0")) if vars(value) else ()
        return Expression("{}({})".format(owner, ", ".join("{}={}".format(*pair) for pair in pairs)), texts.exact)

    def _module(self, module: Any) -> Optional[Expression]:
        module = getattr(module, "_orig_mod", module)
        held = self._constructed.get(id(module))
        if held is None or held[0] is not module or held[1] is None:
            return None
        text = held[1].text
        floats = [item for item in module.parameters() if item.is_floating_point()]
        dtypes = {item.dtype for item in floats}
        if len(dtypes) == 1 and torch.float32 not in dtypes and "dtype=" not in text:
            text += ".to({})".format(next(iter(dtypes)))
        if floats and not any(item.requires_grad for item in floats):
            text += ".requires_grad_(False)"
        if not module.training:
            text += ".eval()"
        return Expression(text, False)

    def _name_of(self, value: Any) -> Optional[str]:
        """Return the name of a class or function in the script: its own, or one under torch; ``None`` if none."""
        name = str(getattr(value, "__qualname__", "") or "")
        owner = self._namespace.get(name.partition(".")[0])
        for part in name.split(".")[1:]:
            owner = getattr(owner, part, None)
        if name and owner is value:
            return name
        name = name.rpartition("VariableFunctionsClass.")[2]  # torch's functions are methods of a private class
        module = getattr(value, "__module__", None) or ""
        if module == "builtins":
            return name
        for owner in _KNOWN_MODULES:
            if getattr(owner, name, None) is value:
                return "{}.{}".format(owner.__name__, name)
        names = [item for item in list(self._namespace.items()) if not item[0].startswith("_")]
        for known, held in names:
            if held is value:
                return str(known)
        for known, held in names:
            if isinstance(held, types.ModuleType) and name.isidentifier() and vars(held).get(name) is value:
                return "{}.{}".format(known, name)
        return None

    def _definition(self, value: Any) -> Optional[Expression]:
        """Return the name of a class or function, or the call that made it.

        One of the script that a decorator replaced has its own name again where that decorator is removed.
        """
        name = self._name_of(value)
        if name:
            return Expression(name, True)
        held = self._constructed.get(id(value))
        if held is not None and held[0] is value:
            return held[1]
        own = str(getattr(value, "__qualname__", ""))
        is_replaced = own in self._namespace and getattr(value, "__module__", "") == "__main__"
        return Expression(own, False) if is_replaced else None

    def _constructor_call(self, kind: type, arguments: Dict[str, Any]) -> Optional[Expression]:
        owner = self._definition(kind)
        if owner is None:
            return None
        try:
            parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]  # type: ignore[misc]
        except (TypeError, ValueError):
            return None
        written = []
        with raw_tensor.without_dispatch():
            for parameter in parameters:
                if parameter.name not in arguments:
                    continue
                value = arguments[parameter.name]
                if parameter.kind is parameter.VAR_POSITIONAL:
                    texts = [self._write(item, 1) for item in value]
                    names = [""] * len(texts)
                elif parameter.kind is parameter.VAR_KEYWORD:
                    texts = [self._write(item, 1) for item in value.values()]
                    names = ["{}=".format(key) for key in value]
                elif parameter.default is not parameter.empty and _equal(parameter.default, value):
                    continue
                else:
                    texts = [self._write(value, 1)]
                    by_name = parameter.default is not parameter.empty or parameter.kind is parameter.KEYWORD_ONLY
                    names = ["{}=".format(parameter.name) if by_name else ""]
                for name, text in zip(names, texts):
                    if text is None:
                        return None
                    written.append(name + text.text)
        return Expression("{}({})".format(owner.text, ", ".join(written)), False)


_KNOWN_MODULES = [torch, torch.nn, torch.nn.functional, torch.optim, torch.nn.init, torch.func, math, argparse, types]


def _is_default(field: Any, value: Any) -> bool:
    if field.default is not dataclasses.MISSING:
        return _equal(field.default, value)
    if field.default_factory is not dataclasses.MISSING:
        try:
            return _equal(field.default_factory(), value)
        except Exception:
            return False
    return False


def _equal(first: Any, second: Any) -> bool:
    if first is second:
        return True
    try:
        return type(first) is type(second) and bool(first == second)
    except Exception:
        return False
