"""Bundle a script and the modules that it imports into one script, so that a reduction can shrink them together.

The bundler works like a linker, on syntax trees. Every top-level statement of a module is a unit. A name that a module
imports from another one becomes the other's name. Two things with the same name in two modules get different names.
Dynamic uses are not followed: ``globals()``, a module passed around as an object. So the caller has to ask whether the
bundled script still shows the mismatch.
"""

from __future__ import annotations

import ast
import builtins
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from torchbisect.core.python_text import parse_python
from torchbisect.minimizer.bundle.module_parts import (
    EXTERNAL,
    SCRIPT,
    BundleTooLarge,
    Entity,
    Lookup,
    Module,
    ModuleLoader,
    ParsedModule,
    imported_name,
)
from torchbisect.minimizer.syntax.edits import Edit, apply, copied
from torchbisect.minimizer.syntax.scope import bound_names, in_own_scope, references, variables_in
from torchbisect.minimizer.syntax.tree import Function, text_of, walk

MAX_NODES = 60_000
"""Maximum size of a bundled script: a larger one would take too long to shrink."""
MAX_NODES_READ = 1_200_000
"""Maximum number of nodes of all modules that are read for it."""


def bundled(source: str, lookup: Lookup, *, whole: bool) -> str | None:
    """Return the script with the code of the modules that ``lookup`` knows in place of their imports.

    ``whole`` includes every statement of a module, because importing it may have side effects; otherwise only the
    statements that bind a needed name are included. Returns ``None`` if no such module can be bundled.
    """
    try:
        return _Bundler(lookup, whole).bundle(source)
    except (SyntaxError, ValueError, RecursionError, BundleTooLarge):
        return None


class _Bundler:
    """The state of one bundle: what was read, and the statements of the bundle so far."""

    def __init__(self, lookup: Lookup, whole: bool) -> None:
        self._modules, self._whole = ModuleLoader(lookup, whole, MAX_NODES_READ), whole
        self._imports: dict[Entity, ast.Import | ast.ImportFrom] = {}
        self._body: list[ast.stmt] = []
        self._done: set[str] = set()
        self._written: set[str] = set()

    def bundle(self, source: str) -> str | None:
        script = self._modules.load(Module(SCRIPT, source))
        taken = self._needed_statements(script)
        if not any(numbers for name, numbers in taken.items() if name != SCRIPT):
            return None
        names = self._choose_names(taken)
        if self._modules.future:
            self._body.append(ast.ImportFrom("__future__", [ast.alias("annotations")], 0))
        # Modules that only functions import come after all others, and before the first statement of the script.
        last = max(number for number, modules in enumerate(script.before) if modules or not number)
        script.before[last] += [name for name, numbers in taken.items() if numbers]
        self._emit(script, taken, names)
        return text_of(ast.fix_missing_locations(ast.Module(self._body, [])))

    def _entity(self, made: ParsedModule, name: str, seen: frozenset[Entity] = frozenset()) -> Entity | None:
        """Return what a name of a module stands for; ``None`` for a bundled module and for an unbound name."""
        self._modules.resolve(made, name)
        if name in made.bound:
            return (made.name, name)
        if name in made.aliases and made.aliases[name] not in seen:
            source, there = made.aliases[name]
            return self._entity(self._modules.loaded[source], there, seen | {made.aliases[name]})
        if name in made.outside:
            entity = (EXTERNAL + imported_name(made.outside[name]), name)
            self._imports.setdefault(entity, made.outside[name])
            return entity
        return None

    def _module_attributes(
        self, made: ParsedModule, tree: ast.AST
    ) -> Iterator[tuple[ast.Attribute, ast.Attribute, Entity]]:
        """Yield each attribute chain to a bundled module's name, its part that names the entity, and the entity."""
        used = {name for name in variables_in(tree) if self._modules.resolve(made, name) and name in made.modules}
        roots = {id(item) for name in used for item in references(tree, name)}
        for item in walk(tree):
            chain: list[ast.Attribute] = []
            root: ast.AST = item
            while isinstance(root, ast.Attribute):
                chain.insert(0, root)
                root = root.value
            if chain and isinstance(root, ast.Name) and id(root) in roots:
                found = self._module_attribute(made.modules[root.id], chain)
                if found is not None:
                    yield chain[-1], *found

    def _module_attribute(self, place: str, chain: list[ast.Attribute]) -> tuple[ast.Attribute, Entity] | None:
        """Return the first attribute of a chain that is not a module, and the entity that it names."""
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

    def _uses(self, made: ParsedModule, node: ast.stmt) -> Iterator[tuple[Entity, str]]:
        """Yield the entities that a statement uses, each with its name there, or no name for a module's attribute."""
        for item in walk(node):
            if isinstance(item, ast.Name) and (found := self._entity(made, item.id)) is not None:
                yield found, item.id
        yield from ((entity, "") for _, _, entity in self._module_attributes(made, ast.Module([node], [])))

    def _needed_statements(self, script: ParsedModule) -> dict[str, set[int]]:
        """Return the positions of the statements to include, by module."""
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
            if nodes > MAX_NODES:
                raise BundleTooLarge
            for (home, what), _ in self._uses(made, made.statements[number]):
                if not home.startswith(EXTERNAL):
                    there = self._modules.loaded[home]
                    pending += [(home, one) for one in [*there.bound[what], *there.changed.get(what, ())]]
            star_imports = (one for one, node in enumerate(made.statements) if isinstance(node, ast.ImportFrom))
            pending += [(name, one) for one in star_imports if one not in taken[name]]
        return taken

    def _choose_names(self, taken: dict[str, set[int]]) -> dict[Entity, str]:
        """Return a name for each entity that means nothing else in any module of the bundle."""
        used = [self._modules.loaded[name] for name, numbers in taken.items() if numbers]
        words = {word for made in used for word in made.identifiers} | set(dir(builtins))
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
            # Names of the script itself are kept; names of modules make way for them.
            others = [made for made in used if name in made.identifiers and home != SCRIPT]
            hidden = any(
                name in made.local_identifiers and uses[made.name].get(entity, {name}) != {name} for made in others
            )
            if name in given or hidden or any(self._entity(made, name) != entity for made in others):
                part = "" if home.startswith(EXTERNAL) else home.rpartition(".")[2].strip("_")
                chosen = f"{name}_{part or number}"
                while chosen in words or chosen in given:
                    number += 1
                    chosen = f"{name}_{number}"
            names[entity] = chosen
            given.add(chosen)
        return names

    def _emit(self, made: ParsedModule, taken: Mapping[str, set[int]], names: Mapping[Entity, str]) -> None:
        """Append a module's statements in the order in which they would run."""
        self._done.add(made.name)
        for number, node in enumerate(made.statements):
            self._emit_first(made.before[number], taken, names)
            if number not in taken[made.name] or isinstance(node, ast.Pass):
                continue
            used = dict.fromkeys(entity for entity, _ in self._uses(made, node))
            for needed in [_import_as(self._imports[one], names[one]) for one in used if one in self._imports]:
                if text_of(needed) not in self._written:
                    self._body.append(needed)
                    self._written.add(text_of(needed))
            self._body.extend(self._rewritten(made, node, names))

    def _emit_first(self, modules: Iterable[str], taken: Mapping[str, set[int]], names: Mapping[Entity, str]) -> None:
        for name in modules:
            if name in self._modules.loaded and name not in self._done:
                self._emit(self._modules.loaded[name], taken, names)

    def _rewritten(self, made: ParsedModule, node: ast.stmt, names: Mapping[Entity, str]) -> list[ast.stmt]:
        tree = ast.Module([copied(node)], [])
        members = [(item, entity) for item, part, entity in self._module_attributes(made, tree) if item is part]
        own = {name: entity for name in made.names if (entity := self._entity(made, name)) is not None}
        new = {name: names[entity] for name, entity in own.items() if entity in names}
        _rename(tree, {name: chosen for name, chosen in new.items() if name != chosen})
        edits = [Edit.of(item, ast.Name(names[entity], item.ctx)) for item, entity in members if entity in names]
        tree = apply(tree, edits)
        # A module used as an object, or for a name that it does not bind itself, stays an import.
        left = sorted(name for name in made.modules if name not in made.bound and references(tree, name))
        kept = [parse_python(_import_module_as(made.modules[name], name)).body[0] for name in left]
        return [*kept, *tree.body]


def _rename(tree: ast.Module, names: dict[str, str]) -> None:
    """Rename names of the module's own scope, in place."""
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
        for item in _same_scope_statements(node):
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


def _same_scope_statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a statement and the statements inside it that bind names of the same scope."""
    yield node
    if not isinstance(node, (*Function, ast.ClassDef)):
        for name in ("body", "orelse", "finalbody", "handlers"):
            for item in getattr(node, name, []) if isinstance(getattr(node, name, None), list) else []:
                yield from _same_scope_statements(item)


def _import_as(node: ast.Import | ast.ImportFrom, new: str) -> ast.Import | ast.ImportFrom:
    """Return an import of one name that binds it as ``new``."""
    made, alias = copied(node), node.names[0]
    same = new == alias.name and not alias.asname
    made.names = [alias if same or new == alias.asname else ast.alias(alias.name, new)]
    return made


def _import_module_as(module: str, name: str) -> str:
    return f"import {module}" if name == module else f"import {module} as {name}"
