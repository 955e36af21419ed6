"""Recognition of torch's names in a script: ``torch.compile`` and its relatives, and tensor constructors.

Names are resolved through the script's imports, never by their spelling: after ``import torch as t`` the name
``t.compile`` is torch's, and a variable ``description`` is not ``torch.jit.script``. The module lies in the minimizer
because no part below it looks for torch's names in a script; the parts above may import it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from torchbisect.minimizer.syntax.tree import Function, walk

_PACKAGES = frozenset({"torch", "functorch"})
_COMPILERS = frozenset({"compile", "optimize", "export", "script", "trace", "make_fx", "aot_function", "aot_module"})
_COMPILER_WORDS = ("compile", "optimize", "export", "jit", "script", "trace")
_ALL = slice(None)
# Modules that a fragment of a script may use without its imports.
_ASSUMED = {name: name for name in ("builtins", "re", "regex", "torch")}


@dataclass(frozen=True)
class TensorConstructor:
    """A function of torch that creates a tensor from numbers.

    The positional arguments ``sizes`` give its size; ``None`` if they are not so easily told.
    """

    sizes: slice | None = None
    float_only: bool = False

    @property
    def takes_sizes(self) -> bool:
        """Tell whether every positional argument is a size."""
        return self.sizes == _ALL


TENSOR_CONSTRUCTORS: Mapping[str, TensorConstructor] = {
    "arange": TensorConstructor(slice(1)),
    "empty": TensorConstructor(_ALL),
    "eye": TensorConstructor(),
    "full": TensorConstructor(slice(1)),
    "linspace": TensorConstructor(slice(2, 3)),
    "ones": TensorConstructor(_ALL),
    "rand": TensorConstructor(_ALL, float_only=True),
    "randint": TensorConstructor(),
    "randn": TensorConstructor(_ALL, float_only=True),
    "tensor": TensorConstructor(),
    "zeros": TensorConstructor(_ALL),
}
"""The tensor constructors by their names in ``torch``."""
LIKE_CONSTRUCTORS = frozenset({"ones_like", "rand_like", "randn_like", "zeros_like"})
"""Constructors in ``torch`` that take the size of another tensor."""


@dataclass(frozen=True)
class TorchNames:
    """The meaning of a script's names, as its imports give it. A name means the same in the whole script.

    Attributes:
        imports: full dotted name of each name that an import binds: ``F`` is ``torch.nn.functional``.
        defines_compile: the script has a function or method ``compile`` of its own, so ``x.compile()`` may be that.
    """

    imports: Mapping[str, str]
    defines_compile: bool = False

    @classmethod
    def of(cls, tree: ast.AST) -> TorchNames:
        """Read the imports of a script; a script without ``import torch`` still means torch by ``torch``."""
        return cls.of_nodes(walk(tree))

    @classmethod
    def of_nodes(cls, nodes: Iterable[ast.AST]) -> TorchNames:
        """Read the imports among all nodes of a script."""
        imports = dict(_ASSUMED)
        own = False
        for node in nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    root = alias.name.partition(".")[0]
                    imports[alias.asname or root] = alias.name if alias.asname else root
            elif isinstance(node, ast.ImportFrom):
                module = "." * node.level + (node.module or "")
                imports.update({alias.asname or alias.name: f"{module}.{alias.name}" for alias in node.names})
            elif isinstance(node, Function):
                own = own or node.name == "compile"
        return cls(imports, own)

    def full_name(self, node: ast.AST) -> str | None:
        """Return the full dotted name of an expression like ``F.relu``; ``None`` if it does not start at an import."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.imports:
            return None
        return ".".join([self.imports[node.id], *reversed(parts)])

    def in_torch(self, node: ast.AST) -> str | None:
        """Return the full name of an expression if it is a name of torch, else ``None``."""
        name = self.full_name(node)
        return name if name is not None and name.partition(".")[0] in _PACKAGES else None

    def starts_in_torch(self, node: ast.AST) -> bool:
        """Tell whether an expression starts with ``torch`` itself, under any alias: ``torch.ones(2).sum``."""
        while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
            node = node.func if isinstance(node, ast.Call) else node.value
        return self.full_name(node) == "torch"

    def names_compile(self, node: ast.AST) -> bool:
        """Tell whether an expression is the name ``torch.compile``."""
        return self.full_name(node) == "torch.compile"

    def is_compile(self, node: ast.AST) -> bool:
        """Tell whether an expression is ``torch.compile``, a call of it, or a call of ``torch.nn.Module.compile``."""
        if isinstance(node, ast.Call):
            return self.names_compile(node.func) or self._is_module_compile(node)
        return self.names_compile(node)

    def is_partial_compile(self, node: ast.AST) -> bool:
        """Tell whether an expression is ``functools.partial(torch.compile, ...)``."""
        return (
            isinstance(node, ast.Call)
            and self.full_name(node.func) == "functools.partial"
            and bool(node.args)
            and self.names_compile(node.args[0])
        )

    def is_compiler(self, node: ast.AST) -> bool:
        """Tell whether a node names something of torch that compiles, exports or traces a function.

        Examples are ``torch.compile``, ``torch.export.export``, ``torch.jit.script`` and a call ``model.compile()``.
        """
        if isinstance(node, ast.Call):
            return self._is_module_compile(node)
        return (self.in_torch(node) or "").rpartition(".")[2] in _COMPILERS

    def mentions_compiler(self, tree: ast.AST) -> bool:
        """Tell whether a compiler is named anywhere in a tree, as in ``partial(torch.compile, dynamic=True)``."""
        return any(map(self.is_compiler, walk(tree)))

    def is_compiler_related(self, node: ast.AST) -> bool:
        """Tell whether a node names any part of torch's compilers, settings among them: ``torch.compiler.disable``."""
        if isinstance(node, ast.Call):
            return self._is_module_compile(node)
        name = self.in_torch(node) or ""
        return any(word in name for word in _COMPILER_WORDS)

    def mentions_compile(self, tree: ast.AST) -> bool:
        """Tell whether ``torch.compile``, ``torch.compiler`` or the like is named anywhere in a tree."""
        return any(self.is_compile(node) or "compile" in (self.in_torch(node) or "") for node in walk(tree))

    def constructor(self, node: ast.AST) -> str | None:
        """Return the name in ``torch`` of the tensor constructor that an expression names, else ``None``."""
        module, _, name = (self.full_name(node) or "").rpartition(".")
        return name if module == "torch" and name in TENSOR_CONSTRUCTORS else None

    def _is_module_compile(self, call: ast.Call) -> bool:
        func = call.func
        if not isinstance(func, ast.Attribute) or func.attr != "compile" or self.defines_compile:
            return False
        return self.full_name(func) is None
