"""Write live values as the statements of a script, each value as exactly as it is."""

from __future__ import annotations

import ast
import collections
import enum
import functools
import importlib
import math
import re
import types
from collections.abc import Iterable
from typing import Any

import torch

from torchbisect.api.script.definitions import (
    Definition,
    NotWritable,
    class_definition,
    function_definition,
    is_installed,
)
from torchbisect.core.python_text import parse_expression
from torchbisect.probe.agent.capture import raw_tensor
from torchbisect.probe.agent.trace.tensor_source import tensor_expression

#: Tensors with more elements are kept in a file, unless they have a short expression.
MOST_ELEMENTS = 16
_BRACKETS: dict[type, str] = {list: "[{}]", set: "{{{}}}", frozenset: "frozenset({{{}}})"}
_PLAIN = (bool, int, str, bytes, complex, range, slice, type(None))


class ScriptWriter:
    """Writer of the statements that make values.

    Attributes:
        tensors: the tensors that are kept in a file beside the script, by name.

    Args:
        state: the expression of a script for the mapping that is in that file.
    """

    def __init__(self, state: str) -> None:
        self.tensors: dict[str, torch.Tensor | dict[str, torch.Tensor]] = {}
        self._state = state
        self._imports: dict[str, None] = {"import torch": None}
        self._statements: list[str] = []
        self._bound: dict[str, Any] = {}
        self._made: dict[int, str] = {}
        self._held: list[Any] = []
        self._storages: collections.Counter[int] = collections.Counter()

    @property
    def text(self) -> str:
        """The statements so far, the imports first."""
        spaced = [f"\n\n{one}\n" if one.startswith(("def ", "class ", "@")) else one for one in self._statements]
        return re.sub(r"\n{4,}", "\n\n\n", "\n".join([*self._imports, "", *spaced])) + "\n"

    def add(self, statement: str) -> None:
        """Add a statement."""
        self._statements.append(statement)

    def add_import(self, statement: str) -> None:
        """Add an import."""
        self._imports[statement] = None

    def expect(self, tensors: Iterable[torch.Tensor]) -> None:
        """Tell of tensors that will be written: those that share memory are kept in the file, which keeps that too."""
        seen = {id(tensor): tensor for tensor in tensors}
        keys = [raw_tensor.storage_key(tensor) for tensor in seen.values()]
        self._storages.update(key for key in keys if key is not None)

    def bind(self, name: str, value: Any, attributes: Iterable[str] = ()) -> None:
        """Bind a global name of the script to a value. Raises ``NotWritable`` if it can't, or if it is bound."""
        value = uncompiled(value)
        if name in self._bound:
            if self._bound[name] is not value:
                raise NotWritable(f"the code reads two different values named {name}")
            return
        self._bound[name] = value
        if isinstance(value, types.ModuleType):
            self._import_module(name, value, attributes)
            return
        text = self.expression(value, name)
        if text != name:
            self.add(f"{name} = {text}")
        if not isinstance(value, _PLAIN):
            self.remember(name, value)

    def name_for(self, value: Any, wanted: str) -> str:
        """Return a free name for a value, close to the one that is wanted, and take it."""
        name, number = wanted if wanted.isidentifier() else "value", 1
        while name in self._bound and self._bound[name] is not value:
            name, number = f"{wanted}_{number}", number + 1
        self._bound[name] = value
        return name

    def remember(self, name: str, value: Any) -> None:
        """Remember the name of a value, so that what refers to it refers to the same object."""
        self._made[id(value)] = name
        self._held.append(value)

    def is_written(self, value: Any) -> bool:
        """Return True for a value that has a name already."""
        return id(value) in self._made

    def keep(self, name: str, held: torch.Tensor | dict[str, torch.Tensor]) -> str:
        """Keep tensors in the file, and return the expression for them."""
        self.tensors[name] = held
        return f"{self._state}[{name!r}]"

    def expression(self, value: Any, name: str = "value") -> str:
        """Return an expression for a value. Raises ``NotWritable`` if there is none.

        ``name`` is what its statement should be called, if it needs one of its own.
        """
        value = uncompiled(value)
        if id(value) in self._made:
            return self._made[id(value)]
        if isinstance(value, float):
            return repr(value) if math.isfinite(value) else f'float("{value}")'
        if value is ...:
            return "..."
        if type(value) in _PLAIN or value is None:
            return repr(value)
        if isinstance(value, torch.dtype | torch.layout | torch.memory_format):
            return str(value)
        if isinstance(value, torch.device):
            return f"torch.{value!r}"
        if isinstance(value, torch.Tensor):
            return self._tensor(value, name)
        if isinstance(value, torch.nn.Module):
            return self.module(value, name)
        if isinstance(value, enum.Enum):
            return f"{self.expression(type(value))}.{value.name}"
        if isinstance(value, type | types.FunctionType | types.BuiltinFunctionType | types.MethodType):
            return self._callable(value)
        return self._container(value, name) or self._object(value, name)

    def module(self, module: torch.nn.Module, name: str) -> str:
        """Write a module and return its name; see ``modules.ModelWriter``. Raises ``NotWritable`` if it can't be."""
        raise NotWritable(f"{name} is a module")

    def _tensor(self, tensor: torch.Tensor, name: str) -> str:
        written = None
        if self._storages[raw_tensor.storage_key(tensor) or 0] < 2:
            with raw_tensor.without_dispatch():
                short = tensor_expression(tensor)
                written = short[0] if short is not None and short[1] else _literal(tensor)
        name = self.name_for(tensor, name)
        self.remember(name, tensor)
        if written is None:
            if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
                raise NotWritable(f"{name} is a {type(tensor).__name__}")
            is_parameter = isinstance(tensor, torch.nn.Parameter)
            written = self.keep(name, tensor if is_parameter else tensor.detach().requires_grad_(tensor.requires_grad))
        if tensor.requires_grad and not tensor.is_leaf:
            written += ".clone()"
        self.add(f"{name} = {written}")
        grad = raw_tensor.read_grad(tensor)
        if grad is not None:
            self.add(f"{name}.grad = {self.expression(grad, name + '_grad')}")
        return name

    def _import_module(self, name: str, module: types.ModuleType, attributes: Iterable[str]) -> None:
        full = module.__name__
        if is_installed(module):
            root = full.partition(".")[0]
            self.add_import(f"import {full}" if name == full else f"import {full} as {name}")
            if name == root and name != full:
                raise NotWritable(f"{name} is the module {full} under the name of another")
            return
        self.add_import("import types")
        self.add(f"{name} = types.ModuleType({full!r})")
        for attribute in sorted(attributes):
            if hasattr(module, attribute):
                self.add(f"{name}.{attribute} = {self.expression(getattr(module, attribute), attribute)}")

    def _callable(self, value: Any) -> str:
        owner = getattr(value, "__self__", None)
        if isinstance(value, types.MethodType) or not isinstance(owner, types.ModuleType | type | None):
            return f"{self.expression(value.__self__, 'owner')}.{value.__name__}"
        if is_installed(value):
            return self._imported(value)
        definition = class_definition(value) if isinstance(value, type) else function_definition(value)
        return self._define(value, definition)

    def _imported(self, value: Any) -> str:
        module, path = value.__module__ or "builtins", value.__qualname__
        if module == "builtins":
            return str(path)
        for owner in ("torch", "torch.nn.functional", module):
            found: Any = importlib.import_module(owner)
            for part in path.split("."):
                found = getattr(found, part, None)
            if found is value:
                self.add_import(f"import {owner}")
                return f"{owner}.{path}"
        raise NotWritable(f"{module}.{path} is not what that name means")

    def _define(self, value: Any, definition: Definition) -> str:
        """Write the definition of a function or class, and of what it reads; return its name."""
        node = definition.node
        plain = "function" if isinstance(node, ast.Lambda) else node.name
        name = self.name_for(value, plain)
        self.remember(name, value)
        for read, held in definition.names.items():
            if uncompiled(held) is not value:
                self.bind(read, held, definition.attributes.get(read, ()))
            elif read != name:
                raise NotWritable(f"{plain} refers to itself by another name")
        if isinstance(value, types.FunctionType) and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self._write_defaults(value, node)
        cells = {cell: held for cell, held in definition.cells.items() if uncompiled(held) is not value}
        if isinstance(node, ast.Lambda):
            text = ast.unparse(node)
        else:
            node.name = name if not definition.cells else plain
            text = ast.unparse(node)
        if not definition.cells:
            self.add(text if not isinstance(node, ast.Lambda) else f"{name} = {text}")
            return name
        given = [self.expression(held, cell) for cell, held in cells.items()]
        factory = self.name_for(definition, f"make_{name}")
        lines = [f"def {factory}({', '.join(cells)}):"]
        lines += ["    " + line for line in text.splitlines()] if not isinstance(node, ast.Lambda) else []
        lines.append(f"    return {plain if not isinstance(node, ast.Lambda) else text}")
        self.add("\n".join(lines))
        self.add(f"{name} = {factory}({', '.join(given)})")
        return name

    def _write_defaults(self, function: types.FunctionType, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Replace the default of each parameter by the value that it has."""
        for index, value in enumerate(function.__defaults__ or ()):
            if not isinstance(node.args.defaults[index], ast.Constant):
                node.args.defaults[index] = parse_expression(self.expression(value, "default"))
        for index, argument in enumerate(node.args.kwonlyargs):
            if argument.arg in (function.__kwdefaults__ or {}):
                text = self.expression((function.__kwdefaults__ or {})[argument.arg], "default")
                node.args.kw_defaults[index] = parse_expression(text)

    def _container(self, value: Any, name: str) -> str | None:
        kind = type(value)
        if kind is torch.Size:
            return f"torch.Size({list(value)!r})"
        if kind in (set, frozenset) and not value:
            return f"{kind.__name__}()"
        if kind in _BRACKETS:
            items = sorted(value, key=repr) if kind in (set, frozenset) else value
            return _BRACKETS[kind].format(", ".join(self._items(items, name)))
        if kind is dict:
            keys, held = self._items(value, name), self._items(value.values(), name)
            return "{" + ", ".join(f"{key}: {item}" for key, item in zip(keys, held)) + "}"
        if kind is tuple:
            return f"({', '.join(self._items(value, name))}{',' if len(value) == 1 else ''})"
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return f"{self.expression(kind)}({', '.join(self._items(value, name))})"
        if kind is collections.OrderedDict:
            self.add_import("import collections")
            return f"collections.OrderedDict({self.expression(dict(value), name)})"
        if kind is collections.defaultdict:
            self.add_import("import collections")
            factory = self.expression(value.default_factory)
            return f"collections.defaultdict({factory}, {self.expression(dict(value), name)})"
        if kind is collections.deque:
            self.add_import("import collections")
            bound = "" if value.maxlen is None else f", maxlen={value.maxlen}"
            return f"collections.deque([{', '.join(self._items(value, name))}]{bound})"
        if kind is functools.partial:
            self.add_import("import functools")
            words = [self.expression(value.func), *self._items(value.args, name)]
            words += [f"{key}={self.expression(item, key)}" for key, item in value.keywords.items()]
            return f"functools.partial({', '.join(words)})"
        return None

    def _items(self, values: Iterable[Any], name: str) -> list[str]:
        return [self.expression(item, name) for item in values]

    def _object(self, value: Any, name: str) -> str:
        """Write an object of the user's classes, by its attributes and not by its constructor."""
        kind = type(value)
        if kind.__module__.partition(".")[0] == "numpy" and hasattr(value, "dtype"):
            return f"{self._tensor(torch.tensor(value), name)}.numpy(){'' if value.shape else '[()]'}"
        if is_installed(kind) and kind is not types.SimpleNamespace:
            raise NotWritable(f"{name} is a {kind.__module__}.{kind.__qualname__}")
        owner = self.expression(kind)
        name = self.name_for(value, name)
        self.remember(name, value)
        if kind is types.SimpleNamespace:
            self.add(f"{name} = {owner}()")
        else:
            self.add(f"{name} = {owner}.__new__({owner})")
        for attribute, item in getattr(value, "__dict__", {}).items():
            if not attribute.startswith(("_torchbisect", "_torchdynamo")):
                self.add(f"object.__setattr__({name}, {attribute!r}, {self.expression(item, attribute)})")
        return name


def uncompiled(value: Any) -> Any:
    """Return what was compiled, of what ``torch.compile`` returned; any other value as it is."""
    if isinstance(value, torch._dynamo.eval_frame.OptimizedModule):
        return value._orig_mod
    return getattr(value, "_torchbisect_target", value) if isinstance(value, types.FunctionType) else value


def _literal(tensor: torch.Tensor) -> str | None:
    """Return a short tensor of floats with every digit; ``None`` for one that has to be kept in a file."""
    is_plain = type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.is_floating_point()
    if not is_plain or tensor.numel() > MOST_ELEMENTS or tensor.device.type != "cpu" or not tensor.is_contiguous():
        return None
    if tensor.layout is not torch.strided or bool((~tensor.isfinite()).any()):
        return None
    digits = 17 if tensor.dtype is torch.float64 else 9
    text = _digits(tensor.detach().tolist(), digits)
    dtype = "" if tensor.dtype is torch.float32 else f", dtype={tensor.dtype}"
    if isinstance(tensor, torch.nn.Parameter):
        frozen = "" if tensor.requires_grad else ", requires_grad=False"
        return f"torch.nn.Parameter(torch.tensor({text}{dtype}){frozen})"
    return f"torch.tensor({text}{dtype}{', requires_grad=True' if tensor.requires_grad else ''})"


def _digits(value: Any, digits: int) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_digits(item, digits) for item in value)}]"
    return repr(float(f"{value:.{digits}g}"))
