"""One script made of a script and the modules that it imports, so that what shrinks it can go into them.

A linker's work, on syntax trees: every top-level statement of a module is a unit, a name that a module imports from
another is that other's, and what two modules call by one name gets two names. What is meant dynamically (``globals()``,
a module handed around as an object) is not followed: whoever asks for a linked text has to ask whether it still shows
what the script showed.
"""

from __future__ import annotations

import ast
import builtins
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from torchbisect.minimizer.bundle.module_parts import (
    OUTSIDE,
    SCRIPT,
    Entity,
    Loaded,
    Lookup,
    Module,
    Modules,
    TooMuch,
    imported_thing,
)
from torchbisect.minimizer.syntax.edits import Edit, apply, copied
from torchbisect.minimizer.syntax.scope import bound_names, in_own_scope, references
from torchbisect.minimizer.syntax.tree import Function, text_of, walk

#: Nodes that a linked script may have: a larger one would not be shrunk in the time that people wait.
MOST_NODES = 60_000
#: Nodes of all modules that are read for it.
MOST_READ = 1_200_000


def linked(source: str, lookup: Lookup, *, whole: bool) -> str | None:
    """The script with all that it imports from the modules that ``lookup`` knows, in their stead.

    Args:
        source: the script.
        lookup: gives the modules to link.
        whole: take every statement of a module, for what it may do when it is imported; else only those that bind a
            name that is needed.

    Returns:
        ``None`` if it imports nothing of the kind, or can't be linked.
    """
    try:
        linker = _Linker(lookup, whole)
        return linker.link(source)
    except (SyntaxError, ValueError, RecursionError, TooMuch):
        return None


class _Linker:
    def __init__(self, lookup: Lookup, whole: bool) -> None:
        self._modules, self._whole = Modules(lookup, whole, MOST_READ), whole
        self._imports: dict[Entity, ast.Import | ast.ImportFrom] = {}
        self._body: list[ast.stmt] = []
        self._done: set[str] = set()
        self._written: set[str] = set()

    def link(self, source: str) -> str | None:
        script = self._modules.load(Module(SCRIPT, source))
        taken = self._needed(script)
        if not any(numbers for name, numbers in taken.items() if name != SCRIPT):
            return None
        names = self._named(taken)
        if self._modules.future:
            self._body.append(ast.ImportFrom("__future__", [ast.alias("annotations")], 0))
        # What only functions import comes when all else is there, and before the script does anything.
        last = max(number for number, modules in enumerate(script.before) if modules or not number)
        script.before[last] += [name for name, numbers in taken.items() if numbers]
        self._emit(script, taken, names)
        return text_of(ast.fix_missing_locations(ast.Module(self._body, [])))

    # What names stand for

    def _entity(self, made: Loaded, name: str, seen: frozenset[Entity] = frozenset()) -> Entity | None:
        """What a name of a module stands for; ``None`` for a linked module, and for what the module doesn't bind."""
        self._modules.resolve(made, name)
        if name in made.bound:
            return (made.name, name)
        if name in made.aliases and made.aliases[name] not in seen:
            source, there = made.aliases[name]
            return self._entity(self._modules.loaded[source], there, seen | {made.aliases[name]})
        if name in made.outside:
            entity = (OUTSIDE + imported_thing(made.outside[name]), name)
            self._imports.setdefault(entity, made.outside[name])
            return entity
        return None

    def _members(self, made: Loaded, tree: ast.AST) -> Iterator[tuple[ast.Attribute, ast.Attribute, Entity]]:
        """Every attribute that leads to a name of a linked module, with its part that does, and what that stands for.

        ``layers.blocks.Block`` is a name of ``layers.blocks``.
        """
        used = {item.id for item in walk(tree) if isinstance(item, ast.Name)}
        used = {name for name in used if self._modules.resolve(made, name) and name in made.modules}
        roots = {id(item) for name in used for item in references(tree, name)}
        for item in walk(tree):
            chain: list[ast.Attribute] = []
            root: ast.AST = item
            while isinstance(root, ast.Attribute):
                chain.insert(0, root)
                root = root.value
            if chain and isinstance(root, ast.Name) and id(root) in roots:
                found = self._member(made.modules[root.id], chain)
                if found is not None:
                    yield chain[-1], *found

    def _member(self, place: str, chain: list[ast.Attribute]) -> tuple[ast.Attribute, Entity] | None:
        """The first attribute of a chain from a module on that is no module, and what it stands for."""
        for part in chain:
            module = self._modules.find(place)
            if module is None:
                return None
            there = self._modules.load(module)
            found = self._entity(there, part.attr)
            if found is not None:
                return part, found
            place = there.modules.get(part.attr, f"{place}.{part.attr}")
        return None

    def _uses(self, made: Loaded, node: ast.stmt) -> Iterator[tuple[Entity, str]]:
        """What a statement names, and by which name; an empty one for an attribute of a module."""
        for item in walk(node):
            if isinstance(item, ast.Name) and (found := self._entity(made, item.id)) is not None:
                yield found, item.id
        yield from ((entity, "") for _, _, entity in self._members(made, ast.Module([node], [])))

    # Choosing and naming

    def _needed(self, script: Loaded) -> dict[str, set[int]]:
        """The numbers of the statements to take, by module."""
        taken: dict[str, set[int]] = defaultdict(set)
        pending = [(script.name, number) for number in range(len(script.statements))]
        if self._whole:
            pending = [
                (made.name, number) for made in self._modules.loaded.values() for number in range(len(made.statements))
            ]
        nodes = 0
        while pending:
            name, number = pending.pop()
            if number in taken[name]:
                continue
            taken[name].add(number)
            made = self._modules.loaded[name]
            nodes += len(walk(made.statements[number]))
            if nodes > MOST_NODES:
                raise TooMuch
            for (home, what), _ in self._uses(made, made.statements[number]):
                if not home.startswith(OUTSIDE):
                    there = self._modules.loaded[home]
                    pending += [(home, one) for one in [*there.bound[what], *there.changed.get(what, ())]]
            stars = (one for one, node in enumerate(made.statements) if isinstance(node, ast.ImportFrom))
            pending += [(name, one) for one in stars if one not in taken[name]]
        return taken

    def _named(self, taken: dict[str, set[int]]) -> dict[Entity, str]:
        """A name for each thing, that means nothing else in any module that is taken."""
        used = [self._modules.loaded[name] for name, numbers in taken.items() if numbers]
        words = {word for made in used for word in made.words} | set(dir(builtins))
        entities = dict.fromkeys(
            entity
            for made in sorted(used, key=lambda made: made.name != SCRIPT)
            for name in made.names
            if (entity := self._entity(made, name)) is not None
        )
        uses: dict[str, dict[Entity, set[str]]] = {made.name: {} for made in used}
        for made in used:
            for number in taken[made.name]:
                for entity, name in self._uses(made, made.statements[number]):
                    uses[made.name].setdefault(entity, set()).add(name)
        names: dict[Entity, str] = {}
        given: set[str] = set()
        for entity in entities:
            home, name = entity
            chosen, number = name, 1
            # What the script binds is named nowhere else: the others' own names are what makes way.
            others = [made for made in used if name in made.words and home != SCRIPT]
            hidden = any(name in made.local and uses[made.name].get(entity, {name}) != {name} for made in others)
            if name in given or hidden or any(self._entity(made, name) != entity for made in others):
                part = "" if home.startswith(OUTSIDE) else home.rpartition(".")[2].strip("_")
                chosen = f"{name}_{part or number}"
                while chosen in words or chosen in given:
                    number += 1
                    chosen = f"{name}_{number}"
            names[entity] = chosen
            given.add(chosen)
        return names

    # Writing

    def _emit(self, made: Loaded, taken: Mapping[str, set[int]], names: Mapping[Entity, str]) -> None:
        """Add a module's statements in the order in which they would run."""
        self._done.add(made.name)
        for number, node in enumerate(made.statements):
            self._emit_first(made.before[number], taken, names)
            if number not in taken[made.name] or isinstance(node, ast.Pass):
                continue
            used = dict.fromkeys(entity for entity, _ in self._uses(made, node))
            for needed in [_imported(self._imports[one], names[one]) for one in used if one in self._imports]:
                if text_of(needed) not in self._written:
                    self._body.append(needed)
                    self._written.add(text_of(needed))
            self._body.extend(self._rewritten(made, node, names))

    def _emit_first(self, modules: Iterable[str], taken: Mapping[str, set[int]], names: Mapping[Entity, str]) -> None:
        for name in modules:
            if name in self._modules.loaded and name not in self._done:
                self._emit(self._modules.loaded[name], taken, names)

    def _rewritten(self, made: Loaded, node: ast.stmt, names: Mapping[Entity, str]) -> list[ast.stmt]:
        """A statement with the names that its words have now."""
        tree = ast.Module([copied(node)], [])
        members = [(item, entity) for item, part, entity in self._members(made, tree) if item is part]
        own = {name: entity for name in made.names if (entity := self._entity(made, name)) is not None}
        new = {name: names[entity] for name, entity in own.items() if entity in names}
        _rename(tree, {name: chosen for name, chosen in new.items() if name != chosen})
        edits = [Edit.of(item, ast.Name(names[entity], item.ctx)) for item, entity in members if entity in names]
        tree = apply(tree, edits)
        # A module that is used as an object, or for what it doesn't say itself, stays an import.
        left = sorted(name for name in made.modules if name not in made.bound and references(tree, name))
        kept = [ast.parse(_imported_module(made.modules[name], name)).body[0] for name in left]
        return [*kept, *tree.body]


def _rename(tree: ast.Module, names: dict[str, str]) -> None:
    """Exchange names of the module's own scope, in place."""
    for old, new in names.items():
        fields = {
            id(item)
            for owner in walk(tree)
            if isinstance(owner, ast.ClassDef) and old in bound_names(owner.body)
            for statement in owner.body
            for item in in_own_scope(statement)
        }
        for mention in references(tree, old):
            if id(mention) not in fields:
                mention.id = new
    for node in tree.body:
        for item in _own(node):
            if isinstance(item, (*Function, ast.ClassDef)):
                item.name = names.get(item.name, item.name)
            elif isinstance(item, (ast.Import, ast.ImportFrom)):
                for alias in item.names:
                    bound = alias.asname or alias.name
                    if bound in names:
                        alias.asname = names[bound]
            elif isinstance(item, ast.ExceptHandler) and item.name in names:
                item.name = names[item.name]
    for item in walk(tree):
        if isinstance(item, ast.Global):
            item.names = [names.get(name, name) for name in item.names]


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """A statement and the statements in it that bind names of the same scope."""
    yield node
    if not isinstance(node, (*Function, ast.ClassDef)):
        for name in ("body", "orelse", "finalbody", "handlers"):
            for item in getattr(node, name, []) if isinstance(getattr(node, name, None), list) else []:
                yield from _own(item)


def _imported(node: ast.Import | ast.ImportFrom, new: str) -> ast.Import | ast.ImportFrom:
    """An import that binds one name, binding it as ``new``."""
    made, alias = copied(node), node.names[0]
    same = new == alias.name and not alias.asname
    made.names = [alias if same or new == alias.asname else ast.alias(alias.name, new)]
    return made


def _imported_module(module: str, name: str) -> str:
    return f"import {module}" if name == module else f"import {module} as {name}"
