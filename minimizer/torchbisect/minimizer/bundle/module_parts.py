"""The modules of a bundle, parsed: their statements, the names these bind, and the meaning of their imports."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from torchbisect.core.python_text import parse_python
from torchbisect.minimizer.syntax.scope import bound_names, parameters
from torchbisect.minimizer.syntax.tree import Comprehension, Function, text_of, walk

Entity = tuple[str, str]
"""The thing that a name stands for: a module and a name in it.

For a module that is not bundled, the first element is ``EXTERNAL`` followed by the full name of the import.
"""
EXTERNAL = "import "
SCRIPT = "__main__"


@dataclass(frozen=True)
class Module:
    """The text of a module by its dotted name; a ``package`` is an ``__init__``, where relative imports start."""

    name: str
    text: str
    package: bool = False


Lookup = Callable[[str], "Module | None"]
"""Function from a dotted name to the module; ``None`` for a module that stays an import."""


@dataclass
class ParsedModule:
    """A parsed module of a bundle. The names that imports bind are resolved when they are first needed.

    Attributes:
        package: package from which relative imports start.
        statements: top-level statements without the imports of bundled modules.
        before: for each statement, the modules that are imported before it.
        pending: names imported from a bundled module and not yet resolved, with that module and their name there.
        star_imports: bundled modules of which everything is imported.
        aliases: names that stand for a name of another bundled module.
        modules: names that stand for a bundled module.
        outside: names imported from elsewhere, with the import that binds each.
        bound: for each name, the positions of the statements that bind it.
        changed: for each name, the positions of the statements that change its object: ``TABLE["a"] = f``.
    """

    name: str
    package: str
    tree: ast.Module
    statements: list[ast.stmt] = field(default_factory=list)
    before: list[list[str]] = field(default_factory=list)
    pending: dict[str, Entity] = field(default_factory=dict)
    star_imports: list[str] = field(default_factory=list)
    aliases: dict[str, Entity] = field(default_factory=dict)
    modules: dict[str, str] = field(default_factory=dict)
    outside: dict[str, ast.Import | ast.ImportFrom] = field(default_factory=dict)
    bound: dict[str, list[int]] = field(default_factory=dict)
    changed: dict[str, list[int]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """All names that the module binds, as far as they are resolved."""
        return [*self.bound, *self.aliases, *self.modules, *self.outside]

    @cached_property
    def identifiers(self) -> frozenset[str]:
        """All identifiers in the module."""
        return frozenset(_identifiers(self.tree))

    @cached_property
    def local_identifiers(self) -> frozenset[str]:
        """The identifiers that functions and classes of the module bind in their own scopes."""
        return frozenset(_local_identifiers(self.tree))


class BundleTooLarge(Exception):
    """The modules are larger than a bundle may be."""


class ModuleLoader:
    """Loader that parses each module a script needs once, up to ``most`` syntax nodes.

    ``whole`` loads also modules that are imported and never used. ``loaded`` keeps the order in which loading began,
    and ``future`` tells that one of the modules imports ``annotations`` from ``__future__``.
    """

    def __init__(self, lookup: Lookup, whole: bool, most: int) -> None:
        self._lookup, self._whole, self._left = lookup, whole, most
        self._known: dict[str, Module | None] = {}
        self._missing: set[Entity] = set()
        self.loaded: dict[str, ParsedModule] = {}
        self.future = False

    def find(self, name: str) -> Module | None:
        """Return a module of the bundle by its name; ``None`` for a module that stays an import."""
        if name not in self._known:
            self._known[name] = self._lookup(name)
        return self._known[name]

    def load(self, module: Module) -> ParsedModule:
        """Parse a module and resolve its imports.

        Raises ``BundleTooLarge``, or ``SyntaxError`` or ``ValueError`` for text or imports that cannot be read.
        """
        if module.name in self.loaded:
            return self.loaded[module.name]
        package = module.name if module.package else module.name.rpartition(".")[0]
        tree = parse_python(module.text)
        made = self.loaded[module.name] = ParsedModule(module.name, package, tree)
        self._left -= len(walk(tree))
        if self._left < 0:
            raise BundleTooLarge

        def known(node: ast.stmt) -> bool:
            return self._imports_bundled(made, node)

        in_functions = _take_function_imports(tree, known)
        before: list[str] = []
        for node in _statements(tree, known, main=module.name == SCRIPT):
            if isinstance(node, ast.ImportFrom) and node.module == "__future__":
                self.future |= any(alias.name == "annotations" for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                before += self._import_from(made, node)
            elif isinstance(node, ast.Import):
                before += self._import(made, node)
            else:
                made.statements.append(node)
                made.before.append(before)
                before = []
        for node in in_functions:
            _ = self._import_from(made, node) if isinstance(node, ast.ImportFrom) else self._import(made, node)
        made.statements.append(ast.Pass())
        made.before.append(before)
        for number, node in enumerate(made.statements):
            _make_imports_absolute(node, made)
            for name in sorted(bound_names([node]) | _declared_global(node)):
                made.bound.setdefault(name, []).append(number)
                for table in (made.pending, made.aliases, made.modules, made.outside):
                    table.pop(name, None)  # bound again, so the import is only one of several bindings
            for name in sorted(_changed_names(node)):
                made.changed.setdefault(name, []).append(number)
        return made

    def resolve(self, made: ParsedModule, name: str) -> bool:
        """Resolve a name that a module may import, and tell whether the module binds it at all."""
        if name in made.pending:
            source, theirs = made.pending.pop(name)
            self._bind(made, name, source, theirs)
        elif name not in made.names and made.star_imports and (made.name, name) not in self._missing:
            self._missing.add((made.name, name))
            for source in reversed(made.star_imports):
                if self._exports(source, name):
                    self._bind(made, name, source, name)
                    break
        return name in made.names

    def _bind(self, made: ParsedModule, name: str, source: str, theirs: str) -> None:
        module = self.find(source)
        assert module is not None
        there = self.load(module)
        itself = theirs in there.pending or theirs in there.names
        if not itself and self.find(f"{source}.{theirs}") is not None:
            made.modules[name] = f"{source}.{theirs}"
        elif not self.resolve(there, theirs):
            made.outside[name] = ast.ImportFrom(source, [ast.alias(theirs, None if name == theirs else name)], 0)
        elif theirs in there.modules:
            made.modules[name] = there.modules[theirs]
        else:
            made.aliases[name] = (source, theirs)

    def _exports(self, source: str, name: str) -> bool:
        """Tell whether ``import *`` from a module binds a name; the text is searched first, as parsing takes longer."""
        module = self.find(source)
        if module is None:
            return False
        if not re.search(rf"\b{re.escape(name)}\b", module.text) and "import *" not in module.text:
            return False
        there = self.load(module)
        listed = _dunder_all(there)
        return self.resolve(there, name) and (name in listed if listed else not name.startswith("_"))

    def _imports_bundled(self, made: ParsedModule, node: ast.stmt) -> bool:
        if isinstance(node, ast.ImportFrom):
            return node.module != "__future__" and self.find(_source_of(node, made)) is not None
        return isinstance(node, ast.Import) and any(self.find(alias.name) is not None for alias in node.names)

    def _import(self, made: ParsedModule, node: ast.Import) -> list[str]:
        """Record the names that an import binds, and return the bundled modules that it runs."""
        run: list[str] = []
        for alias in node.names:
            if self.find(alias.name) is None:
                self._keep_import(made, ast.Import([alias]), alias.asname or alias.name.partition(".")[0])
                continue
            parts = alias.name.split(".")
            run += [".".join(parts[: end + 1]) for end in range(len(parts))]
            made.modules[alias.asname or parts[0]] = alias.name if alias.asname else parts[0]
        return self._run(run)

    def _import_from(self, made: ParsedModule, node: ast.ImportFrom) -> list[str]:
        """Record the names that a ``from`` import binds, and return the bundled modules that it runs."""
        source, run = _source_of(node, made), list[str]()
        if node.level > len(made.package.split(".") if made.package else ()):
            raise ValueError("a relative import outside of a package")
        for alias in node.names:
            name = alias.asname or alias.name
            if self.find(source) is None:
                self._keep_import(made, ast.ImportFrom(source, [alias], 0), name)
            elif name == "*":
                made.star_imports.append(source)
            else:
                made.pending[name] = (source, alias.name)
                run.append(f"{source}.{alias.name}")
        parts = source.split(".")
        return self._run([".".join(parts[: end + 1]) for end in range(len(parts))] + run)

    def _run(self, names: list[str]) -> list[str]:
        found = [module for name in dict.fromkeys(names) if (module := self.find(name)) is not None]
        for module in found if self._whole else ():
            self.load(module)
        return [module.name for module in found]

    def _keep_import(self, made: ParsedModule, node: ast.Import | ast.ImportFrom, name: str) -> None:
        """Record an import of a module that is not bundled."""
        if name == "*" or (isinstance(node, ast.Import) and node.names[0].asname is None and "." in node.names[0].name):
            # Such an import does more than bind this name, so the statement is kept.
            made.statements.append(node)
            made.before.append([])
        elif name in made.outside and imported_name(made.outside[name]) != imported_name(node):
            made.statements += [made.outside[name], node]
            made.before += [[], []]
        else:
            made.outside[name] = node


def _dunder_all(there: ParsedModule) -> list[str]:
    """Return the names in the ``__all__`` of a module; empty if it has none."""
    return [
        element.value
        for node in there.statements
        if isinstance(node, ast.Assign) and _assigns(node, "__all__") and isinstance(node.value, (ast.List, ast.Tuple))
        for element in node.value.elts
        if isinstance(element, ast.Constant) and isinstance(element.value, str)
    ]


def _statements(tree: ast.Module, known: Callable[[ast.stmt], bool], *, main: bool) -> Iterator[ast.stmt]:
    """Yield the statements that run on import, and under ``TYPE_CHECKING`` those that say where a name comes from."""
    for number, node in enumerate(tree.body):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            yield from (item for item in node.body if isinstance(item, ast.ImportFrom) and known(item))
            yield from node.orelse
        elif isinstance(node, ast.If) and "'__main__'" in ast.dump(node.test) and not main:
            yield from node.orelse
        elif number or not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            yield node


def _take_function_imports(tree: ast.Module, wanted: Callable[[ast.stmt], bool]) -> list[ast.Import | ast.ImportFrom]:
    """Remove the imports inside functions whose names are free at module level, and return them."""
    taken = dict.fromkeys(bound_names(tree.body), "")
    found: dict[str, ast.Import | ast.ImportFrom] = {}
    for function in [node for node in walk(tree) if isinstance(node, Function)]:
        for holder in walk(function):
            block = getattr(holder, "body", None)
            if not isinstance(block, list) or isinstance(holder, ast.Try):
                continue
            for node in [node for node in block if isinstance(node, (ast.Import, ast.ImportFrom)) and wanted(node)]:
                text = text_of(node)
                if all(taken.setdefault(name, text) == text for name in bound_names([node])):
                    block[block.index(node)] = ast.Pass()
                    found[text] = node
    return list(found.values())


def _source_of(node: ast.ImportFrom, made: ParsedModule) -> str:
    if not node.level:
        return node.module or ""
    parts = made.package.split(".") if made.package else []
    parts = parts[: len(parts) - (node.level - 1)]
    return ".".join([*parts, *filter(None, [node.module])])


def imported_name(node: ast.Import | ast.ImportFrom) -> str:
    """Return the dotted name of the object that an import binds: ``torch.nn`` for ``from torch import nn``."""
    alias = node.names[0]
    if isinstance(node, ast.ImportFrom):
        return f"{node.module}.{alias.name}"
    return alias.name if alias.asname else alias.name.partition(".")[0]


def _make_imports_absolute(statement: ast.stmt, made: ParsedModule) -> None:
    for node in walk(statement):
        if isinstance(node, ast.ImportFrom) and node.level:
            node.module, node.level = _source_of(node, made), 0


def _declared_global(node: ast.AST) -> set[str]:
    return {name for item in walk(node) if isinstance(item, ast.Global) for name in item.names}


def _changed_names(node: ast.stmt) -> set[str]:
    """Return the names at the root of the expressions that a statement assigns to or calls."""
    parts: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        parts = node.targets
    elif isinstance(node, ast.AugAssign):
        parts = [node.target]
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        parts = [node.value.func, *node.value.args[:1]]
    found = set()
    for part in parts:
        while isinstance(part, (ast.Attribute, ast.Subscript)):
            part = part.value
        if isinstance(part, ast.Name):
            found.add(part.id)
    return found


def _assigns(node: ast.Assign, name: str) -> bool:
    return any(isinstance(target, ast.Name) and target.id == name for target in node.targets)


def _identifiers(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for item in walk(tree):
        if isinstance(item, ast.Name):
            found.add(item.id)
        elif isinstance(item, ast.arg):
            found.add(item.arg)
        elif isinstance(item, (*Function, ast.ClassDef)):
            found.add(item.name)
        elif isinstance(item, (ast.Import, ast.ImportFrom)):
            found |= bound_names([item])
        elif isinstance(item, (ast.Global, ast.Nonlocal)):
            found |= set(item.names)
        else:
            name = getattr(item, "name", None) or getattr(item, "rest", None)
            found |= {name} if isinstance(name, str) else set()
    return found


def _local_identifiers(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for scope in walk(tree):
        if isinstance(scope, (*Function, ast.Lambda)):
            found |= {item.arg for item in parameters(scope.args)}
        if isinstance(scope, (*Function, ast.ClassDef)):
            found |= bound_names(scope.body)
        elif isinstance(scope, (*Comprehension, ast.Lambda)):
            found |= {item.id for item in walk(scope) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)}
    return found
