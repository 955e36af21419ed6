"""Replace a name that is bound once by its value.

Before and after::

    n = 4
    h = x + n
    g(h)

    g(x + 4)

Names with one use are replaced by any value, names with several uses only by constants and other names: a tensor that
is written twice is two tensors. The same goes for attributes, such as those of a configuration object that is made
once. A value outside a function stays outside, unless it is a literal; inside it would be traced, and that is another
program.
"""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit, copied
from torchbisect.minimizer.syntax.scope import bound_names, imported_names, object_attributes
from torchbisect.minimizer.syntax.tree import Function, children, parents, walk


def run(search: ReductionSearch) -> None:
    """Attempt many substitutions in one question, then fewer."""
    search.scan_in_batches(_substitutions)


def _substitutions(tree: ast.Module) -> Iterator[Edit]:
    """Return the edits of assigned attributes, lists that are appended to, and names, scope by scope."""
    yield from _attribute_substitutions(tree)
    yield from _appended_items(tree)
    yield from _only_items(tree)
    imported = imported_names(tree)
    for scope in walk(tree):
        if isinstance(scope, (ast.Module, *Function)):
            yield from _scope_substitutions(scope, imported)


def _attribute_substitutions(tree: ast.Module) -> Iterator[Edit]:
    """Return edits from ``self.rate = 3`` and later ``self.rate`` to ``3``, for attributes that are set once."""
    nodes = walk(tree)
    stored = Counter(
        item.attr for item in nodes if isinstance(item, ast.Attribute) and not isinstance(item.ctx, ast.Load)
    )
    members = {
        item.name
        for owner in nodes
        if isinstance(owner, ast.ClassDef)
        for item in owner.body
        if isinstance(item, Function)
    }
    reads = list(object_attributes(nodes))
    functions = {node.name for node in tree.body if isinstance(node, Function)}
    for node in nodes:
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        if not isinstance(node, ast.Assign) or not isinstance(target, ast.Attribute):
            continue
        if _is_literal(node.value) or (isinstance(node.value, ast.Name) and node.value.id in functions):
            uses = [item for item in reads if item.attr == target.attr]
            once = isinstance(node.value, (ast.Constant, ast.Name)) or len(uses) == 1
            if uses and once and stored[target.attr] == 1 and target.attr not in members:
                yield Edit(((node, None), *((use, copied(node.value)) for use in uses)))


def _is_literal(value: ast.expr) -> bool:
    """Tell whether an expression is a constant, or a container of such expressions."""
    parts = children(value) if isinstance(value, (ast.List, ast.Tuple, ast.Dict, ast.Set)) else []
    items = [item for item in parts if isinstance(item, ast.expr)]
    return isinstance(value, ast.Constant) or (bool(items) and all(map(_is_literal, items)))


def _scope_substitutions(
    scope: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef, imported: set[str]
) -> Iterator[Edit]:
    """Return the edits of the names that one scope binds."""
    bindings: dict[str, list[ast.Assign]] = {}
    above = parents(scope)
    for node in _own_statements(scope.body):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            bindings.setdefault(node.targets[0].id, []).append(node)
    for name, assigned in bindings.items():
        stores = [node for node in walk(scope) if isinstance(node, ast.Name) and node.id == name and not _is_read(node)]
        if len(assigned) != 1 or len(stores) != 1 or _is_bound_otherwise(scope, name):
            continue
        uses = [node for node in walk(scope) if isinstance(node, ast.Name) and node.id == name and _is_read(node)]
        value = assigned[0].value
        plain = _is_repeatable(value, imported)
        # A tensor made outside a function stays outside: inside it would be traced, and that is another program.
        near = [use for use in uses if not _is_in_inner_scope(scope, use)]
        returned = above[id(uses[0])] if len(uses) == len(near) == 1 else None
        if isinstance(returned, ast.Return) and returned.value is uses[0]:
            yield Edit(((assigned[0], ast.Return(value)), (returned, None)))
        if uses and (plain or (len(uses) == 1 and (near or isinstance(value, _MOVABLE) or _is_literal(value)))):
            yield Edit(((assigned[0], None), *((use, copied(value) if plain else value) for use in uses)))
    # A name that is bound several times in a row: write ``x = a`` and ``x = f(x)`` as ``x = f(a)``.
    yield from _rebound_names(scope)


_MOVABLE = (ast.Attribute, ast.Lambda)
"""Values that mean the same inside a function that names them once, as literals do."""


def _is_repeatable(value: ast.expr, imported: set[str]) -> bool:
    """Tell whether an expression means the same if written twice.

    That is a constant, a name, a name in a module such as ``torch.bfloat16``, or a tuple of them.
    """
    if isinstance(value, ast.Tuple):
        return all(_is_repeatable(item, imported) for item in value.elts)
    if isinstance(value, ast.Attribute):
        while isinstance(value, ast.Attribute):
            value = value.value
        return isinstance(value, ast.Name) and value.id in imported
    return isinstance(value, (ast.Constant, ast.Name))


def _is_in_inner_scope(scope: ast.AST, use: ast.Name) -> bool:
    inner = [
        node for node in walk(scope) if isinstance(node, (*Function, ast.Lambda, ast.ClassDef)) and node is not scope
    ]
    return any(node is use for function in inner for node in walk(function))


def _rebound_names(scope: ast.AST) -> Iterator[Edit]:
    """Return edits of ``x = a`` directly before the one use of ``x`` in a statement that binds ``x`` anew."""
    for node in walk(scope):
        block = getattr(node, "body", None)
        if not isinstance(block, list):
            continue
        for first, second in itertools.pairwise(block):
            if (
                not isinstance(first, ast.Assign)
                or len(first.targets) != 1
                or not isinstance(first.targets[0], ast.Name)
            ):
                continue
            name = first.targets[0].id
            if not isinstance(second, (ast.Assign, ast.Return)) or second.value is None:
                continue
            uses = [item for item in walk(second.value) if isinstance(item, ast.Name) and item.id == name]
            rebinds = isinstance(second, ast.Return) or any(
                isinstance(target, ast.Name) and target.id == name for target in second.targets
            )
            if len(uses) == 1 and rebinds:
                yield Edit(((first, None), (uses[0], first.value)))


def _appended_items(tree: ast.Module) -> Iterator[Edit]:
    """Return edits from ``found = []`` and ``found.append(x)`` to ``found = [x]``, if nothing between them needs it."""
    for node in walk(tree):
        block = getattr(node, "body", None)
        block = block if isinstance(block, list) else []
        for number, first in enumerate(block):
            items = _initial_items(first.value) if isinstance(first, ast.Assign) and len(first.targets) == 1 else None
            if items is None:
                continue
            name = ast.unparse(first.targets[0])
            second = next((item for item in block[number + 1 :] if _mentions(item, name)), None)
            added = None if second is None else _added_items(second, name)
            if second is not None and added is not None:
                longer = type(items)(elts=[*items.elts, *added], ctx=ast.Load())
                moved = ast.Assign(targets=first.targets, value=first.value)
                yield Edit(((first, None), (second, moved), (items, longer)))


def _added_items(statement: ast.AST, name: str) -> list[ast.expr] | None:
    """Return what a statement adds to a list, as by ``append``, or by ``extend`` and ``+=`` of a literal."""
    if isinstance(statement, ast.AugAssign):
        goes_on = isinstance(statement.op, ast.Add) and ast.unparse(statement.target) == name
        return statement.value.elts if goes_on and isinstance(statement.value, (ast.List, ast.Tuple)) else None
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or len(call.args) != 1:
        return None
    method, given = ast.unparse(call.func), call.args[0]
    if method == f"{name}.extend" and isinstance(given, (ast.List, ast.Tuple)):
        return given.elts
    return [given] if method in (f"{name}.append", f"{name}.add") else None


def _only_items(tree: ast.Module) -> Iterator[Edit]:
    """Return edits from ``found = []`` and ``found.append(x)`` anywhere below to ``found = x``, and of ``found[0]``."""
    nodes = walk(tree)
    above = parents(tree)
    for binding in nodes:
        if not isinstance(binding, ast.Assign) or ast.unparse(binding.value) not in ("[]", "list()"):
            continue
        name = ast.unparse(binding.targets[0])
        uses = [item for item in nodes if isinstance(item, ast.Name) and item.id == name]
        calls = [above[id(above[id(item)])] for item in uses if isinstance(above[id(item)], ast.Attribute)]
        appends = [item for item in calls if isinstance(item, ast.Call) and ast.unparse(item.func) == f"{name}.append"]
        stores = [item for item in uses if isinstance(item.ctx, ast.Store)]
        if len(calls) != 1 or len(appends) != 1 or len(stores) != 1 or len(appends[0].args) != 1:
            continue
        statement = above[id(appends[0])]
        firsts = [item for item in nodes if isinstance(item, ast.Subscript) and ast.unparse(item) == f"{name}[0]"]
        if isinstance(statement, ast.Expr):
            item = ast.Assign(targets=binding.targets, value=appends[0].args[0])
            yield Edit(((binding, None), (statement, item), *((first, first.value) for first in firsts)))


def _initial_items(value: ast.expr) -> ast.List | None:
    """Return the list that a value is, or that a container is made from, as in ``deque([1], maxlen=2)``."""
    if isinstance(value, ast.Call) and value.args:
        value = value.args[0]
    return value if isinstance(value, ast.List) else None


def _mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(part, (ast.Name, ast.Attribute)) and ast.unparse(part) == name for part in walk(node))


def _own_statements(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Return the statements of a scope, those inside blocks included, and the handlers and cases around them."""
    for statement in body:
        yield statement
        if not isinstance(statement, (*Function, ast.ClassDef)):
            for name in ("body", "orelse", "finalbody", "handlers", "cases"):
                yield from _own_statements(getattr(statement, name, None) or [])


def _is_read(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load)


def _is_bound_otherwise(scope: ast.AST, name: str) -> bool:
    """Tell whether a definition, an import, a parameter or an inner scope binds the name too."""
    for node in walk(scope):
        if isinstance(node, ast.arg) and node.arg == name:
            return True
        if isinstance(node, (*Function, ast.ClassDef)) and node is not scope:
            if node.name == name or name in bound_names(node.body):
                return True
        elif (isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names) or (
            isinstance(node, ast.alias) and (node.asname or node.name) == name
        ):
            return True
    return False
