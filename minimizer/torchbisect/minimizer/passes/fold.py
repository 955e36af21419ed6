"""Fold constants: evaluate expressions and branches whose value the text alone decides.

Before and after::

    class Config:                     f(4, a)
        width: int = 4
    f(Config().width, [a, b][0] if True else c)

Other reductions leave such expressions behind, and programs are full of configuration fields that never change. All of
it goes in one question, because none of it changes what the script does. Fields that are assigned or given in several
places stay.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit, copied
from torchbisect.minimizer.syntax.scope import object_attributes
from torchbisect.minimizer.syntax.tree import walk


def run(search: ReductionSearch) -> None:
    """Attempt many foldings in one question, then fewer."""
    search.scan_in_batches(_foldings)


def _foldings(tree: ast.Module) -> Iterator[Edit]:
    """Return the edit of each expression or branch that is decided."""
    fields: dict[str, ast.expr] = dict(_constant_fields(tree))
    lists = dict(_first_items(tree))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    for read in object_attributes(walk(tree)):
        if read.attr in fields:
            yield Edit.of(read, copied(fields[read.attr]))
        elif isinstance(read.value, ast.Call) and isinstance(read.value.func, ast.Name):
            yield from _field_of_new_object(read, read.value, classes.get(read.value.func.id))
    for node in walk(tree):
        if isinstance(node, (ast.If, ast.IfExp)):
            truth = _truth_of(node.test)
            if truth is not None:
                taken = node.body if truth else node.orelse
                yield Edit.of(node, list[ast.AST](taken) if isinstance(taken, list) else taken)
        elif isinstance(node, ast.Try):
            yield from _caught_at_once(node)
        elif isinstance(node, ast.While) and _truth_of(node.test) is False:
            yield Edit.of(node, list[ast.AST](node.orelse))
        elif isinstance(node, ast.Call):
            if ast.unparse(node.func) == "next" and ast.unparse(node) in lists:
                yield Edit.of(node, lists[ast.unparse(node)])
            yield from _unpacked_arguments(node)
            yield from _call_result(node)
            yield from _pairs(node)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            yield from _item_of_literal(node)
        elif (
            isinstance(node, ast.BinOp) and isinstance(node.left, ast.Constant) and isinstance(node.right, ast.Constant)
        ):
            yield from _arithmetic(node)


def _constant_fields(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Return fields with a constant default, or a tuple of constants, that no call gives and no statement sets."""
    given = {keyword.arg for node in walk(tree) if isinstance(node, ast.Call) for keyword in node.keywords}
    given |= {
        node.attr for node in walk(tree) if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)
    }
    classes = [node for node in walk(tree) if isinstance(node, ast.ClassDef)]
    positional = {
        node.func.id
        for node in walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args
    }
    seen: dict[str, int] = {}
    for owner in classes:
        for item in owner.body:
            name = _assigned_name(item)
            if name is not None:
                seen[name] = seen.get(name, 0) + 1
    for owner in classes:
        for item in owner.body:
            name = _assigned_name(item)
            value = item.value if isinstance(item, (ast.Assign, ast.AnnAssign)) else None
            lone = name is not None and seen[name] == 1 and name not in given and owner.name not in positional
            parts = value.elts if isinstance(value, ast.Tuple) else [value]
            if lone and name is not None and value and all(isinstance(part, ast.Constant) for part in parts):
                yield name, value


def _field_of_new_object(read: ast.Attribute, made: ast.Call, owner: ast.ClassDef | None) -> Iterator[Edit]:
    """Return the edit from ``Config(4, rate=2).rate`` to ``2``, for a class of fields."""
    body = owner.body if owner is not None else []
    names = [item.target.id for item in body if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)]
    if read.attr not in names or any(isinstance(item, ast.FunctionDef) and item.name == "__init__" for item in body):
        return
    given = {keyword.arg: keyword.value for keyword in made.keywords} | dict(zip(names, made.args))
    if read.attr in given:
        yield Edit.of(read, given[read.attr])


def _first_items(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Return ``next(iter(found))`` with its result for each list of names or constants that is bound once."""
    stored = [node.id for node in walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    for node in tree.body:
        name = _assigned_name(node)
        value = node.value if isinstance(node, ast.Assign) else None
        first = value.elts[:1] if isinstance(value, (ast.List, ast.Tuple)) else []
        if name is not None and stored.count(name) == 1 and first and isinstance(first[0], (ast.Name, ast.Constant)):
            yield f"next(iter({name}))", first[0]


def _assigned_name(item: ast.stmt) -> str | None:
    if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
        return item.target.id
    if isinstance(item, ast.Assign) and len(item.targets) == 1 and isinstance(item.targets[0], ast.Name):
        return item.targets[0].id
    return None


def _truth_of(test: ast.expr) -> bool | None:
    """Return the truth of a condition that the text decides, else ``None``."""
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _truth_of(test.operand)
        return None if inner is None else not inner
    if (
        isinstance(test, ast.Compare)
        and len(test.ops) == 1
        and isinstance(test.ops[0], (ast.Eq, ast.Is, ast.NotEq, ast.IsNot))
    ):
        left, right = test.left, test.comparators[0]
        if isinstance(left, ast.Constant) and isinstance(right, ast.Constant):
            return (left.value == right.value) is isinstance(test.ops[0], (ast.Eq, ast.Is))
    return None


def _caught_at_once(node: ast.Try) -> Iterator[Edit]:
    """Return the edit from ``try: raise E(x)`` and ``except E as e: ...`` to ``e = E(x)`` and what the handler does."""
    raised, handler = node.body[-1], node.handlers[0] if node.handlers else None
    if not isinstance(raised, ast.Raise) or raised.exc is None or handler is None or handler.type is None:
        return
    made = raised.exc.func if isinstance(raised.exc, ast.Call) else raised.exc
    if handler.name is not None and ast.unparse(made) == ast.unparse(handler.type):
        bound = ast.Assign(targets=[ast.Name(id=handler.name, ctx=ast.Store())], value=raised.exc)
        yield Edit.of(node, [*node.body[:-1], bound, *handler.body, *node.finalbody])


def _call_result(node: ast.Call) -> Iterator[Edit]:
    """Return the edit of a call that is decided, such as ``next(iter([a]))`` or ``getattr(a, 'b')``."""
    name = ast.unparse(node.func)
    if name == "next" and node.args and isinstance(node.args[0], ast.Call) and ast.unparse(node.args[0].func) == "iter":
        source = node.args[0].args[0] if node.args[0].args else None
        if isinstance(source, (ast.List, ast.Tuple)) and source.elts:
            yield Edit.of(node, source.elts[0])
        elif isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute) and source.func.attr == "items":
            written = source.func.value
            if isinstance(written, ast.Dict) and written.keys and written.keys[0] is not None:
                yield Edit.of(node, ast.Tuple(elts=[written.keys[0], written.values[0]], ctx=ast.Load()))
        elif isinstance(source, ast.Call) and ast.unparse(source.func) == "range" and len(source.args) == 1:
            yield Edit.of(node, ast.Constant(0))
    elif (
        (name.endswith(".Sequential") and len(node.args) == 1 and not isinstance(node.args[0], ast.Starred))
        or (name.endswith(".ModuleList") and len(node.args) == 1)
        or (name in ("list", "tuple") and len(node.args) == 1 and isinstance(node.args[0], (ast.List, ast.Tuple)))
    ) or (name == "dict" and len(node.args) == 1 and not node.keywords and isinstance(node.args[0], ast.Dict)):
        yield Edit.of(node, node.args[0])
    elif isinstance(node.func, ast.Attribute) and node.func.attr == "items" and isinstance(node.func.value, ast.Call):
        inner = node.func.value
        if ast.unparse(inner.func) == "dict" and len(inner.args) == 1:
            yield Edit.of(node, inner.args[0])
    elif name == "getattr" and len(node.args) == 2 and isinstance(node.args[1], ast.Constant):
        if str(node.args[1].value).isidentifier():
            yield Edit.of(node, ast.Attribute(value=node.args[0], attr=str(node.args[1].value), ctx=ast.Load()))
    elif isinstance(node.func, ast.Lambda) and not node.args and not node.keywords and not node.func.args.args:
        yield Edit.of(node, node.func.body)


def _pairs(node: ast.Call) -> Iterator[Edit]:
    """Return the edits from ``dict([('a', b)])`` to ``{'a': b}``, and from such layers of a Sequential to ``b``."""
    name, given = ast.unparse(node.func), node.args[0] if len(node.args) == 1 and not node.keywords else None
    if name == "dict":
        pairs = _literal_pairs(given)
        if pairs:
            yield Edit.of(node, ast.Dict(keys=[key for key, _ in pairs], values=[value for _, value in pairs]))
    elif name.endswith(".Sequential") and isinstance(given, ast.Call) and given.args:
        pairs = _literal_pairs(given.args[0])
        if pairs and ast.unparse(given.func).endswith("OrderedDict"):
            yield Edit.of(given, [value for _, value in pairs])


def _literal_pairs(node: ast.expr | None) -> list[list[ast.expr]]:
    """Return the pairs of a literal list of nothing else; an empty list for another expression."""
    items = node.elts if isinstance(node, (ast.List, ast.Tuple)) else []
    pairs = [item.elts for item in items if isinstance(item, ast.Tuple) and len(item.elts) == 2]
    return pairs if len(pairs) == len(items) else []


def _unpacked_arguments(node: ast.Call) -> Iterator[Edit]:
    """Return the edits from ``f(a, *(b, c))`` to ``f(a, b, c)``."""
    for item in node.args:
        if isinstance(item, ast.Starred) and isinstance(item.value, (ast.Tuple, ast.List)):
            yield Edit.of(item, list[ast.AST](item.value.elts))


def _item_of_literal(node: ast.Subscript) -> Iterator[Edit]:
    """Return the edit from ``[a, b][0]`` to ``a``, also for tuples and dictionaries."""
    value, key = node.value, node.slice
    if not isinstance(key, ast.Constant):
        return
    plain = isinstance(value, (ast.List, ast.Tuple)) and not any(isinstance(item, ast.Starred) for item in value.elts)
    if plain and isinstance(value, (ast.List, ast.Tuple)) and type(key.value) is int and key.value < len(value.elts):
        yield Edit.of(node, value.elts[key.value])
    if isinstance(value, ast.Dict):
        for name, item in zip(value.keys, value.values):
            if isinstance(name, ast.Constant) and name.value == key.value:
                yield Edit.of(node, item)


def _arithmetic(node: ast.BinOp) -> Iterator[Edit]:
    """Return the edit from ``2 + 3`` to ``5``, for small whole numbers."""
    left, right = (item.value if isinstance(item, ast.Constant) else None for item in (node.left, node.right))
    if not isinstance(left, int) or not isinstance(right, int) or abs(left) > 10**6 or abs(right) > 10**6:
        return
    if isinstance(node.op, ast.Add):
        yield Edit.of(node, ast.Constant(left + right))
    elif isinstance(node.op, ast.Sub) and left >= right:
        yield Edit.of(node, ast.Constant(left - right))
    elif isinstance(node.op, ast.Mult):
        yield Edit.of(node, ast.Constant(left * right))
    elif isinstance(node.op, ast.FloorDiv) and right > 0 and left >= 0:
        yield Edit.of(node, ast.Constant(left // right))
