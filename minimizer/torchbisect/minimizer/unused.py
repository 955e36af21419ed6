"""Find definitions, assignments, imports and annotations that nothing uses."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Collection, Iterator, Sequence

from torchbisect.minimizer.defects import class_members
from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit, apply, apply_or_none
from torchbisect.minimizer.syntax.scope import (
    assigned_targets,
    imported_names,
    in_own_scope,
    object_attributes,
    variables_in,
)
from torchbisect.minimizer.syntax.tree import Function, walk

_CALLED_BY_OTHERS = frozenset({"forward", "backward", "setup_context", "jvp", "vmap", "training_step"})
_CHANGING_METHODS = frozenset(
    ("add", "append", "apply", "attach", "backward", "clear", "close", "compile", "discard", "extend", "insert", "next")
    + ("pop", "popleft", "remove", "reset", "seed", "send", "setdefault", "sort", "start", "step", "update", "write")
)
_PURE_BUILTINS = frozenset(dir(builtins)) - {"exec", "eval", "input", "next", "open", "print", "setattr", "delattr"}


def may_have_side_effects(value: ast.expr, imported: Collection[str], members: Collection[str]) -> bool:
    """Tell whether evaluating an expression may change something else.

    Functions of libraries are assumed to change nothing, except those whose names say so (``manual_seed``,
    ``register_hook``, ``add_``). Functions of the script and methods of its classes (``members``) are not
    analyzed, so they may.
    """
    for node in walk(value):
        if isinstance(node, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)):
            return True
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Attribute):
            name = node.func.attr
            if name in members or name in _CHANGING_METHODS or name.endswith(("_", "_seed")):
                return True
            if name.startswith(("register", "set_", "use_")):
                return True
        elif not isinstance(node.func, ast.Name) or not (node.func.id in _PURE_BUILTINS or node.func.id in imported):
            return True
    return False


def without_unused(
    tree: ast.Module, *, harmless: bool = False, since: ast.Module | None = None, kept: Collection[str] = ()
) -> ast.Module:
    """Return the tree without unused code, and without the code that only unused code uses, and so on.

    ``harmless`` keeps an assignment whose value may have a side effect. Assignments of the attributes that are ``kept``
    stay, and those of attributes that nothing read in the tree ``since`` which it changed: the mismatch may be in them.
    """
    kept = {*kept, *(unread_attributes(since) if since is not None else ())}
    while found := unused_edits(tree, harmless=harmless, kept=kept):
        tree = apply(tree, found)
    return tree


def unread_attributes(tree: ast.Module) -> set[str]:
    """Return the attributes that methods assign to their object and that nothing reads."""
    return _assigned_attributes(tree) - _read_attributes(tree)


def recorded_attributes(tree: ast.Module) -> set[str]:
    """Return the attributes that methods change after ``__init__`` and that something reads, as of a counter."""
    methods = [node for node in walk(tree) if isinstance(node, Function) and node.name != "__init__"]
    return {name for method in methods for name in _assigned_attributes(method)} & _read_attributes(tree)


def _read_attributes(tree: ast.Module) -> set[str]:
    return {node.attr for node in object_attributes(walk(tree))} | _getattr_names(tree)


def _assigned_attributes(tree: ast.AST) -> set[str]:
    stored = [node for node in walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)]
    return {node.attr for node in stored if isinstance(node.value, ast.Name) and node.value.id == "self"}


def unused_edits(tree: ast.Module, *, harmless: bool = False, kept: Collection[str] = ()) -> list[Edit]:
    """Return an edit that removes each binding that is never read, and each annotation.

    A binding stays where its value may raise what is caught there: that may be what it is for. ``harmless`` keeps an
    assignment whose value may have a side effect, and ``kept`` names attributes that stay.
    """
    used_by = UsedNames(tree)
    attributes = _read_attributes(tree) | {*kept}
    keywords = {node.arg for node in walk(tree) if isinstance(node, ast.keyword) and node.arg}
    fields = {id(item) for owner in walk(tree) if isinstance(owner, ast.ClassDef) for item in owner.body}
    imported, methods = imported_names(tree), class_members(tree)
    kept_for_others = fields | {id(node) for node in _caught(tree) if _may_raise(node)}

    def stays(node: ast.Assign | ast.AugAssign) -> bool:
        return id(node) in kept_for_others or (harmless and may_have_side_effects(node.value, imported, methods))

    unread = _removable_assignments(tree, used_by, attributes, stays)
    annotated = any(isinstance(node, ast.AnnAssign) for node in walk(tree))
    found: list[Edit] = []
    for node in walk(tree):
        used = used_by(node)
        if isinstance(node, ast.ClassDef):
            found += _unused_members(node, attributes | keywords | used_by.reads, _calls(tree, node.name))
        if isinstance(node, (*Function, ast.ClassDef)) and node.name not in used and id(node) not in fields:
            found.append(Edit.remove(node))
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found += [Edit.remove(alias) for alias in node.names if _unused_import(node, alias, used, annotated)]
        elif id(node) in unread or (
            isinstance(node, ast.Expr) and "saved_tensors" not in attributes and _saves_for_backward(node.value)
        ):
            found.append(Edit.remove(node))
        elif isinstance(node, ast.NamedExpr) and node.target.id not in used:
            found.append(Edit.of(node, node.value))
        elif isinstance(node, ast.withitem) and node.optional_vars and never_read(node.optional_vars, used, attributes):
            found.append(Edit.remove(node.optional_vars))
        elif isinstance(node, ast.ExceptHandler) and node.name and node.name not in used:
            found.append(Edit.of(node, ast.ExceptHandler(type=node.type, name=None, body=node.body)))
        found += _annotation_edits(node)
    return found


def _removable_assignments(
    tree: ast.Module,
    used_by: UsedNames,
    attributes: set[str],
    stays: Callable[[ast.Assign | ast.AugAssign], bool],
) -> frozenset[int]:
    """Return the assignments that are never read, but those that stay and those that a ``+=`` which stays goes on."""
    nodes = [node for node in walk(tree) if isinstance(node, (ast.Assign, ast.AugAssign))]
    unread = [
        node for node in nodes if all(never_read(item, used_by(node), attributes) for item in assigned_targets(node))
    ]
    staying = {id(node) for node in unread if stays(node)}
    going_on = {
        (id(used_by(node)), node.target.id)
        for node in unread
        if id(node) in staying and isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)
    }
    return frozenset(
        id(node)
        for node in unread
        if id(node) not in staying
        and not any(
            (id(used_by(node)), name) in going_on for item in assigned_targets(node) for name in variables_in(item)
        )
    )


def _caught(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield what stands where an exception may be caught: in ``try``, and in a context that is not torch's."""
    for node in walk(tree):
        if isinstance(node, ast.Try):
            catches = bool(node.handlers)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            catches = any(not ast.unparse(item.context_expr).startswith("torch.") for item in node.items)
        else:
            continue
        if catches:
            yield from (item for part in node.body for item in in_own_scope(part))


def _may_raise(node: ast.AST) -> bool:
    return isinstance(node, (ast.Assign, ast.AugAssign)) and any(
        isinstance(part, (ast.Call, ast.Subscript, ast.Div, ast.FloorDiv, ast.Mod)) for part in walk(node.value)
    )


class UsedNames:
    """The names in use in the scope of a node: those that its function reads, or else the whole script (``reads``)."""

    def __init__(self, tree: ast.Module) -> None:
        self._aliases = _aliases(tree)
        self.reads = self._read_in(tree)
        shared = {name for node in walk(tree) if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names}
        self._everywhere = shared | _registered(tree)
        self._of: dict[int, set[str]] = {}
        for function in walk(tree):
            if isinstance(function, Function):
                inside = self._read_in(function) | self._everywhere
                self._of.update((id(node), inside) for item in function.body for node in in_own_scope(item))
        self._of_module = self.reads | self._everywhere

    def __call__(self, node: ast.AST) -> set[str]:
        """Return the names in use in the scope in which a node binds a name."""
        return self._of.get(id(node), self._of_module)

    def _read_in(self, tree: ast.AST) -> set[str]:
        """Return the names that a tree reads; ``x += 1`` changes an object in place, so it reads an ``x`` of others."""
        nodes = walk(tree)
        whole = _reads_every_name(tree, nodes)
        found = {
            node.id for node in nodes if isinstance(node, ast.Name) and (whole or not isinstance(node.ctx, ast.Store))
        }
        changed = (node.target for node in nodes if isinstance(node, ast.AugAssign))
        return found | ({target.id for target in changed if isinstance(target, ast.Name)} & self._aliases)


def _reads_every_name(tree: ast.AST, nodes: Sequence[ast.AST]) -> bool:
    """Tell whether a function or module reads its names by none of them: by ``locals()``, ``eval`` and the like."""
    calls = [(node.func.id, node) for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    anywhere = ("eval", "exec", "globals") if isinstance(tree, ast.Module) else ("eval", "exec")
    if any(name in anywhere for name, _ in calls):
        return True
    plain = {id(node) for name, node in calls if name in ("locals", "vars", "dir") and not node.args}
    body = getattr(tree, "body", ()) if plain else ()
    return any(id(node) in plain for statement in body for node in in_own_scope(statement))


def _aliases(tree: ast.Module) -> set[str]:
    """Return the names that may stand for an object that something else holds: ``x = a.b``, and parameters."""
    found: set[str] = set()
    for node in walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, (ast.Name, ast.Attribute, ast.Subscript)):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            found |= variables_in(node.target)
    return found


def _getattr_names(tree: ast.Module) -> set[str]:
    """Return the names that ``getattr`` may look up: all string constants, if the script calls ``getattr``."""
    if not any(isinstance(node, ast.Name) and node.id == "getattr" for node in walk(tree)):
        return set()
    return {node.value for node in walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def _saves_for_backward(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func).endswith(".save_for_backward")


def _registered(tree: ast.Module) -> set[str]:
    """Return the functions and classes that a decorator or their base stores in a registry which other code reads."""
    return _registered_by_decorator(tree) | _registered_by_base(tree)


def _registered_by_base(tree: ast.Module) -> set[str]:
    """Return the classes of which a base may take note as they are defined, as ``__init_subclass__`` does."""
    owners = [node for node in walk(tree) if isinstance(node, ast.ClassDef)]
    noting = {owner.name for owner in owners if any(keyword.arg == "metaclass" for keyword in owner.keywords)}
    noting |= {
        owner.name
        for owner in owners
        if any(isinstance(item, Function) and item.name == "__init_subclass__" for item in owner.body)
    }
    inside = {id(base) for owner in owners for base in owner.bases}
    inside |= {id(node) for owner in owners if owner.name in noting for node in walk(owner)}
    used = (
        {node.id for node in walk(tree) if isinstance(node, ast.Name) and id(node) not in inside} if noting else set()
    )
    found: set[str] = set()
    for owner in owners:
        if any(isinstance(base, ast.Name) and base.id in (noting & used) | found for base in owner.bases):
            found.add(owner.name)
    return found


def _registered_by_decorator(tree: ast.Module) -> set[str]:
    decorated = [
        (node.name, root, decorator)
        for node in walk(tree)
        if isinstance(node, (*Function, ast.ClassDef))
        for decorator in node.decorator_list
        if (root := _root_name(decorator)) is not None
    ]
    if not decorated:
        return set()
    functions = {node.name: node for node in walk(tree) if isinstance(node, Function)}
    inside = {id(item) for _, _, decorator in decorated for item in walk(decorator)}
    inside |= {id(item) for _, root, _ in decorated if root in functions for item in walk(functions[root])}
    names = [node for node in walk(tree) if isinstance(node, ast.Name)]
    bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    bound |= {node.name for node in walk(tree) if isinstance(node, ast.ClassDef)}
    read = {node.id for node in names if id(node) not in inside and isinstance(node.ctx, ast.Load)} & bound
    found = set()
    for name, root, _ in decorated:
        registries = variables_in(functions[root]) if root in functions else {root}
        if registries & read:
            found.add(name)
    return found


def _root_name(decorator: ast.expr) -> str | None:
    """Return ``registry`` for ``@registry.add("name")``."""
    while isinstance(decorator, (ast.Call, ast.Attribute)):
        decorator = decorator.func if isinstance(decorator, ast.Call) else decorator.value
    return decorator.id if isinstance(decorator, ast.Name) else None


def _unused_members(owner: ast.ClassDef, used: set[str], calls: list[ast.Call]) -> list[Edit]:
    """Return edits that remove unused methods, and unused fields together with their arguments in calls."""
    found: list[Edit] = []
    place = 0
    for item in owner.body:
        if isinstance(item, Function):
            special = item.name.startswith("__") and item.name.endswith("__")
            if not special and item.name not in used and item.name not in _CALLED_BY_OTHERS:
                found.append(Edit.remove(item))
        elif isinstance(item, (ast.AnnAssign, ast.Assign)):
            if all(isinstance(target, ast.Name) and target.id not in used for target in assigned_targets(item)):
                given = [part for call in calls for part in call.args[place : place + 1]]
                found.append(Edit.remove(item, *(given if isinstance(item, ast.AnnAssign) else [])))
            place += isinstance(item, ast.AnnAssign)
    return found


def _calls(tree: ast.Module, name: str) -> list[ast.Call]:
    calls = [node for node in walk(tree) if isinstance(node, ast.Call)]
    return [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == name]


def _unused_import(node: ast.Import | ast.ImportFrom, alias: ast.alias, used: set[str], annotated: bool) -> bool:
    if isinstance(node, ast.ImportFrom) and node.module == "__future__":
        return not annotated  # else the annotations of fields would be evaluated
    return alias.name != "*" and (alias.asname or alias.name.split(".")[0]) not in used


def never_read(target: ast.expr, used: set[str], attributes: set[str]) -> bool:
    """Tell whether an assignment target is never read, from the names in use in its scope and all attributes read."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return all(never_read(item, used, attributes) for item in target.elts)
    if isinstance(target, ast.Starred):
        return never_read(target.value, used, attributes)
    if isinstance(target, ast.Name):
        return target.id not in used
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id in ("self", "ctx"):
        return target.attr not in attributes
    return False


def _annotation_edits(node: ast.AST) -> list[Edit]:
    """Return edits that remove the annotations of a function or module, but not those that define a class's fields."""
    if isinstance(node, ast.arg) and node.annotation is not None:
        return [Edit.remove(node.annotation)]
    if not isinstance(node, (ast.Module, *Function)):
        return []
    found = [
        Edit.of(item, ast.Assign([item.target], item.value) if item.value else None)
        for statement in node.body
        for item in in_own_scope(statement)
        if isinstance(item, ast.AnnAssign) and hasattr(item, "lineno")
    ]
    returns = None if isinstance(node, ast.Module) else node.returns
    return found + ([Edit.remove(returns)] if returns is not None else [])


def attempt_and_clean(search: ReductionSearch, edits: Sequence[Edit], place: int = 0) -> int | None:
    """Attempt one edit after the other, each with the removal of what it leaves unused and has no side effect.

    The attempts start at ``place``, and leave out what failed before in this round. Returns the position of the edit
    that was accepted, or ``None`` if none was.
    """
    base = search.tree

    def made(edit: Edit) -> ast.Module | None:
        tree = apply_or_none(base, [edit])
        return tree and without_unused(tree, harmless=True, since=base)

    won = search.attempt_first_once(edits[place:], made)
    return None if won is None else place + won
