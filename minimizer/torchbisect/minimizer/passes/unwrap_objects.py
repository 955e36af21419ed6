"""Put a value in the place of an object that holds it.

Before and after::

    class Weight:                               class Weight:
        def __init__(self, value):                  def __init__(self, value):
            self.value = value                          self.value = value
        def __add__(self, other):                   def __add__(self, other):
            return Weight(self.value + 1)               return self.value + 1
    x * (a + b).value                           x * (a + b)

An object that only holds a value gives way to it everywhere. One that does more gives way where a function returns it
and the value is read from the result.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.construction import constructor_of, constructor_of_fields
from torchbisect.minimizer.syntax.edits import Edit, Replacement
from torchbisect.minimizer.syntax.names import with_values
from torchbisect.minimizer.syntax.scope import arguments_of, object_attributes, references, variables_in
from torchbisect.minimizer.syntax.tree import parents, walk


def run(search: ReductionSearch) -> None:
    """Unwrap many objects in one question, then fewer."""
    search.scan_in_batches(_unwrapped)


def _unwrapped(tree: ast.Module) -> Iterator[Edit]:
    """Return the edits of each class whose objects give way everywhere, then of each value that functions return."""
    owners = [node for node in walk(tree) if isinstance(node, ast.ClassDef)]
    above = parents(tree)
    for owner in owners:
        yield from _given_way(tree, owner, above)
    yield from _returned(tree, {owner.name: owner for owner in owners})


def _given_way(tree: ast.Module, owner: ast.ClassDef, above: dict[int, ast.AST]) -> Iterator[Edit]:
    """Return the edit that puts the value in the place of an object which only holds that: ``w`` for ``Box(w)``."""
    init = constructor_of(owner) or constructor_of_fields(owner)
    stored = [item for item in init.body if isinstance(item, ast.Assign)] if init is not None else []
    if init is None or len(stored) != 1 or not init.args.args:
        return
    target, value = stored[0].targets[0], stored[0].value
    named = references(tree, owner.name)
    made = [above[id(item)] for item in named]
    if not isinstance(target, ast.Attribute) or init.args.args[0].arg in variables_in(value) or not made:
        return
    inside, attribute = {id(item) for item in walk(owner)}, target.attr
    changes: list[tuple[ast.AST, Replacement]] = [(owner, None)]
    for call, name in zip(made, named):
        bound = arguments_of(init, call, skip=1) if isinstance(call, ast.Call) and call.func is name else None
        if bound is None:
            return
        # An argument itself, as it may hold another of these objects, which gives way with it.
        given = bound.get(value.id) if isinstance(value, ast.Name) else None
        changes.append((call, given or with_values(value, bound)))
    reads = [item for item in object_attributes(walk(tree)) if item.attr == attribute and id(item) not in inside]
    yield Edit((*changes, *((item, item.value) for item in reads)))


def _returned(tree: ast.Module, owners: dict[str, ast.ClassDef]) -> Iterator[Edit]:
    """Return an edit for each attribute that is read from a result: functions return its value, not the object."""
    nodes = walk(tree)
    made = [node.value for node in nodes if isinstance(node, ast.Return) and isinstance(node.value, ast.Call)]
    reads: dict[str, list[ast.Attribute]] = {}
    for item in object_attributes(nodes):
        if isinstance(item.ctx, ast.Load) and isinstance(item.value, (ast.BinOp, ast.UnaryOp, ast.Call)):
            reads.setdefault(item.attr, []).append(item)
    for attribute, found in reads.items():
        changes: list[tuple[ast.AST, Replacement]] = []
        for call in made:
            owner = owners.get(call.func.id) if isinstance(call.func, ast.Name) else None
            value = _attribute_of_new_object(owners, owner, call, attribute)
            if value is not None:
                changes.append((call, value))
        if changes:
            yield Edit((*changes, *((item, item.value) for item in found)))


def _attribute_of_new_object(
    owners: dict[str, ast.ClassDef], owner: ast.ClassDef | None, call: ast.Call, attribute: str
) -> ast.expr | None:
    """Return the expression that an object which a call makes has as an attribute; ``None`` if that can't be read.

    Args:
        owners: the classes of the script by their names.
        owner: the class of the object, or that of its bases whose ``__init__`` is called.
        call: the call with the arguments of ``__init__``.
    """
    if owner is None:
        return None
    init = constructor_of(owner)
    bases = [owners.get(base.id) for base in owner.bases if isinstance(base, ast.Name)]
    base = bases[0] if bases else None
    if init is None:
        return _attribute_of_new_object(owners, base, call, attribute)
    bound = arguments_of(init, call, skip=1)
    if bound is None or not init.args.args:
        return None
    stored = f"{init.args.args[0].arg}.{attribute}"
    for statement in init.body:
        value = statement.value if isinstance(statement, (ast.Assign, ast.Expr)) else None
        if isinstance(statement, ast.Assign) and value is not None and ast.unparse(statement.targets[0]) == stored:
            return with_values(value, bound)
        if isinstance(value, ast.Call) and ast.unparse(value.func) == "super().__init__":
            given = with_values(value, bound)
            found = _attribute_of_new_object(owners, base, given, attribute) if isinstance(given, ast.Call) else None
            if found is not None:
                return found
    return None
