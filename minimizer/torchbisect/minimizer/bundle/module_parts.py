"""A module's text taken apart for linking: its statements, what they bind, and what its imports mean."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from torchbisect.minimizer.syntax.scope import bound_names, parameters
from torchbisect.minimizer.syntax.tree import Comprehension, Function, text_of, walk

Entity = tuple[str, str]
"""What a name stands for: a name of a module that is linked, or, after ``OUTSIDE``, an import of one that isn't."""
OUTSIDE = "import "
SCRIPT = "__main__"


@dataclass(frozen=True)
class Module:
    """A module's text.

    Attributes:
        name: its dotted name.
        text: its source.
        package: whether it is a package's ``__init__``, which relative imports start from.
    """

    name: str
    text: str
    package: bool = False


Lookup = Callable[[str], "Module | None"]
"""A module by its dotted name; ``None`` for one that is to stay an import."""


@dataclass
class Loaded:
    """A module being linked. What an import binds is looked up when its name is first asked for.

    Attributes:
        name: its dotted name; the script's is ``__main__``.
        package: what its relative imports start from.
        tree: its text.
        statements: its top-level statements, imports of linked modules taken out.
        before: for each statement, the modules that are imported before it.
        pending: names that are imported from a linked module, with that module and their name there.
        stars: linked modules of which it imports everything.
        aliases: names that stand for a name of another linked module.
        modules: names that stand for a linked module.
        outside: names that stand for something imported from elsewhere, with the one import that binds each.
        bound: the numbers of the statements that bind a name.
        changed: the numbers of the statements that change what a name stands for: ``TABLE["a"] = f``.
    """

    name: str
    package: str
    tree: ast.Module
    statements: list[ast.stmt] = field(default_factory=list)
    before: list[list[str]] = field(default_factory=list)
    pending: dict[str, Entity] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    aliases: dict[str, Entity] = field(default_factory=dict)
    modules: dict[str, str] = field(default_factory=dict)
    outside: dict[str, ast.Import | ast.ImportFrom] = field(default_factory=dict)
    bound: dict[str, list[int]] = field(default_factory=dict)
    changed: dict[str, list[int]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """All that it binds, as far as it was asked for."""
        return [*self.bound, *self.aliases, *self.modules, *self.outside]

    @cached_property
    def words(self) -> frozenset[str]:
        """Every identifier in it."""
        return frozenset(_words(self.tree))

    @cached_property
    def local(self) -> frozenset[str]:
        """The identifiers that functions and classes in it bind for themselves."""
        return frozenset(_local_words(self.tree))


class TooMuch(Exception):
    """There is more than is linked."""


class Modules:
    """The modules that a script needs, each read once.

    Args:
        lookup: gives them by name.
        whole: read also those that are imported and never used.
        most: nodes of syntax trees to read before giving up.

    Attributes:
        loaded: those that were read, by name, in the order in which they were begun.
        future: whether one of them has annotations that are never evaluated.
    """

    def __init__(self, lookup: Lookup, whole: bool, most: int) -> None:
        self._lookup, self._whole, self._left = lookup, whole, most
        self._known: dict[str, Module | None] = {}
        self._missing: set[Entity] = set()
        self.loaded: dict[str, Loaded] = {}
        self.future = False

    def find(self, name: str) -> Module | None:
        """A module that is linked, by its name."""
        if name not in self._known:
            self._known[name] = self._lookup(name)
        return self._known[name]

    def load(self, module: Module) -> Loaded:
        """A module taken apart.

        Raises:
            SyntaxError, ValueError: it isn't Python, or imports what nothing can stand for.
            TooMuch: there is more to read than is read.
        """
        if module.name in self.loaded:
            return self.loaded[module.name]
        package = module.name if module.package else module.name.rpartition(".")[0]
        tree = ast.parse(module.text)
        made = self.loaded[module.name] = Loaded(module.name, package, tree)
        self._left -= len(walk(tree))
        if self._left < 0:
            raise TooMuch

        def known(node: ast.stmt) -> bool:
            return self._imports_linked(made, node)

        lazily = _taken_out(tree, known)
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
        for node in lazily:
            _ = self._import_from(made, node) if isinstance(node, ast.ImportFrom) else self._import(made, node)
        made.statements.append(ast.Pass())
        made.before.append(before)
        for number, node in enumerate(made.statements):
            _absolute(node, made)
            for name in sorted(bound_names([node]) | _declared_global(node)):
                made.bound.setdefault(name, []).append(number)
                for table in (made.pending, made.aliases, made.modules, made.outside):
                    table.pop(name, None)  # bound again: whatever was imported under it is one of several
            for name in sorted(_changed(node)):
                made.changed.setdefault(name, []).append(number)
        return made

    def resolve(self, made: Loaded, name: str) -> bool:
        """Look up what a name of a module is that it imports; returns whether the module binds it at all."""
        if name in made.pending:
            source, theirs = made.pending.pop(name)
            self._bind(made, name, source, theirs)
        elif name not in made.names and made.stars and (made.name, name) not in self._missing:
            self._missing.add((made.name, name))
            for source in reversed(made.stars):
                if self._offers(source, name):
                    self._bind(made, name, source, name)
                    break
        return name in made.names

    def _bind(self, made: Loaded, name: str, source: str, theirs: str) -> None:
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

    def _offers(self, source: str, name: str) -> bool:
        """Whether ``import *`` from a module brings a name; its text is looked at before it is taken apart."""
        module = self.find(source)
        if module is None:
            return False
        if not re.search(rf"\b{re.escape(name)}\b", module.text) and "import *" not in module.text:
            return False
        there = self.load(module)
        listed = _listed(there)
        return self.resolve(there, name) and (name in listed if listed else not name.startswith("_"))

    def _imports_linked(self, made: Loaded, node: ast.stmt) -> bool:
        if isinstance(node, ast.ImportFrom):
            return node.module != "__future__" and self.find(_source_of(node, made)) is not None
        return isinstance(node, ast.Import) and any(self.find(alias.name) is not None for alias in node.names)

    def _import(self, made: Loaded, node: ast.Import) -> list[str]:
        """Note what an import binds; returns the linked modules that it runs."""
        run: list[str] = []
        for alias in node.names:
            if self.find(alias.name) is None:
                self._keep(made, ast.Import([alias]), alias.asname or alias.name.partition(".")[0])
                continue
            parts = alias.name.split(".")
            run += [".".join(parts[: end + 1]) for end in range(len(parts))]
            made.modules[alias.asname or parts[0]] = alias.name if alias.asname else parts[0]
        return self._run(run)

    def _import_from(self, made: Loaded, node: ast.ImportFrom) -> list[str]:
        source, run = _source_of(node, made), list[str]()
        if node.level > len(made.package.split(".") if made.package else ()):
            raise ValueError("a relative import outside of a package")
        for alias in node.names:
            name = alias.asname or alias.name
            if self.find(source) is None:
                self._keep(made, ast.ImportFrom(source, [alias], 0), name)
            elif name == "*":
                made.stars.append(source)
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

    def _keep(self, made: Loaded, node: ast.Import | ast.ImportFrom, name: str) -> None:
        if name == "*" or (isinstance(node, ast.Import) and node.names[0].asname is None and "." in node.names[0].name):
            # What it binds is not all that it does: such a statement stays one.
            made.statements.append(node)
            made.before.append([])
        elif name in made.outside and imported_thing(made.outside[name]) != imported_thing(node):
            made.statements += [made.outside[name], node]
            made.before += [[], []]
        else:
            made.outside[name] = node


def _listed(there: Loaded) -> list[str]:
    """What a module says that ``import *`` brings; empty where it says nothing."""
    return [
        element.value
        for node in there.statements
        if isinstance(node, ast.Assign) and _targets(node, "__all__") and isinstance(node.value, (ast.List, ast.Tuple))
        for element in node.value.elts
        if isinstance(element, ast.Constant) and isinstance(element.value, str)
    ]


def _statements(tree: ast.Module, known: Callable[[ast.stmt], bool], *, main: bool) -> Iterator[ast.stmt]:
    """The top-level statements that run on an import; also the imports from linked modules that only type checkers see.

    Those say where a name comes from that a package makes at run time.
    """
    for number, node in enumerate(tree.body):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            yield from (item for item in node.body if isinstance(item, ast.ImportFrom) and known(item))
            yield from node.orelse
        elif isinstance(node, ast.If) and "'__main__'" in ast.dump(node.test) and not main:
            yield from node.orelse
        elif number or not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            yield node


def _taken_out(tree: ast.Module, wanted: Callable[[ast.stmt], bool]) -> list[ast.Import | ast.ImportFrom]:
    """The imports that functions make when they are called, taken out of them, where their names are free."""
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


def _source_of(node: ast.ImportFrom, made: Loaded) -> str:
    """The dotted name of the module that names are imported from."""
    if not node.level:
        return node.module or ""
    parts = made.package.split(".") if made.package else []
    parts = parts[: len(parts) - (node.level - 1)]
    return ".".join([*parts, *filter(None, [node.module])])


def imported_thing(node: ast.Import | ast.ImportFrom) -> str:
    """The dotted name of what an import of one name binds: ``from torch import nn`` binds ``torch.nn``."""
    alias = node.names[0]
    if isinstance(node, ast.ImportFrom):
        return f"{node.module}.{alias.name}"
    return alias.name if alias.asname else alias.name.partition(".")[0]


def _absolute(statement: ast.stmt, made: Loaded) -> None:
    """Imports inside of a statement, which stay, are not relative to anything any more."""
    for node in walk(statement):
        if isinstance(node, ast.ImportFrom) and node.level:
            node.module, node.level = _source_of(node, made), 0


def _declared_global(node: ast.AST) -> set[str]:
    return {name for item in walk(node) if isinstance(item, ast.Global) for name in item.names}


def _changed(node: ast.stmt) -> set[str]:
    """The names at the root of what a statement assigns to or calls."""
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


def _targets(node: ast.Assign, name: str) -> bool:
    return any(isinstance(target, ast.Name) and target.id == name for target in node.targets)


def _words(tree: ast.Module) -> set[str]:
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


def _local_words(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for scope in walk(tree):
        if isinstance(scope, (*Function, ast.Lambda)):
            found |= {item.arg for item in parameters(scope.args)}
        if isinstance(scope, (*Function, ast.ClassDef)):
            found |= bound_names(scope.body)
        elif isinstance(scope, (*Comprehension, ast.Lambda)):
            found |= {item.id for item in walk(scope) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)}
    return found
