"""Write the ways in which a script makes an object as a plain call of its class."""

from __future__ import annotations

import ast

from torchbisect.core.python_text import parse_python
from torchbisect.minimizer.syntax.edits import Edit, apply
from torchbisect.minimizer.syntax.names import substituted
from torchbisect.minimizer.syntax.tree import walk

REGISTERING = ("register_parameter", "register_buffer", "add_module", "register_module")
"""The methods by which a module is given a part under a name."""


def constructor_of(owner: ast.ClassDef) -> ast.FunctionDef | None:
    """Return the ``__init__`` that a class defines itself, or ``None``."""
    return next((item for item in owner.body if isinstance(item, ast.FunctionDef) and item.name == "__init__"), None)


def constructor_of_fields(owner: ast.ClassDef) -> ast.FunctionDef | None:
    """Return the ``__init__`` that a dataclass or a ``NamedTuple`` is given for its fields; ``None`` without fields."""
    fields = [item for item in owner.body if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)]
    given = [ast.unparse(item.target) + (f"={ast.unparse(item.value)}" if item.value else "") for item in fields]
    stored = [f"    self.{ast.unparse(item.target)} = {ast.unparse(item.target)}" for item in fields]
    if not fields or any("field(" in text for text in given):
        return None
    made = parse_python("\n".join([f"def __init__(self, {', '.join(given)}):", *stored])).body[0]
    return made if isinstance(made, ast.FunctionDef) else None


def with_constructors(tree: ast.Module) -> ast.Module:
    """Return the tree in which ``A()`` makes an object that ``A.__new__(A)`` and statements after it made part by part.

    Scripts that are written from a live object are of this form.
    """
    for name in [node.name for node in tree.body if isinstance(node, ast.ClassDef)]:
        tree = _with_constructor(tree, name)
    return tree


def _with_constructor(tree: ast.Module, owner: str) -> ast.Module:
    made = [
        node
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.value) == f"{owner}.__new__({owner})"
    ]
    if len(made) != 1 or len(made[0].targets) != 1 or not isinstance(made[0].targets[0], ast.Name):
        return tree
    name = made[0].targets[0].id
    parts: dict[ast.stmt, ast.stmt] = {}
    for statement in tree.body[tree.body.index(made[0]) + 1 :]:
        part = _part_of_object(statement, name)
        if part is not None:
            parts[statement] = substituted(part, {name: "self"}, {})
        elif any(isinstance(node, ast.Name) and node.id == name for node in walk(statement)):
            break
    init = parse_python("def __init__(self):\n    pass").body[0]
    assert isinstance(init, ast.FunctionDef)
    init.body = list(parts.values()) or init.body
    end = list(parts)[-1] if parts else made[0]
    call = ast.Call(func=ast.Name(id=owner, ctx=ast.Load()), args=[], keywords=[])
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == owner)
    old = [item for item in body if isinstance(item, ast.FunctionDef) and item.name == "__init__"]
    first = old[0] if old else body[0]
    edits = [Edit.remove(item) for item in (made[0], *parts) if item is not end]
    edits.append(Edit.of(end, ast.Assign(targets=made[0].targets, value=call)))
    return apply(tree, [*edits, Edit.of(first, [init] if old else [init, first])])


def _part_of_object(statement: ast.stmt, name: str) -> ast.stmt | None:
    """Return the statement that gives an object one of its parts, as a constructor has it; ``None`` for any other."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        own = isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == name
        return statement if own else None
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call):
        return None
    called, values = ast.unparse(call.func), call.args
    if called == "torch.nn.Module.__init__":
        return parse_python("super().__init__()").body[0] if values and ast.unparse(values[0]) == name else None
    if called == "object.__setattr__" and len(values) == 3 and ast.unparse(values[0]) == name:
        attribute = values[1].value if isinstance(values[1], ast.Constant) else None
        target = ast.Attribute(value=ast.Name(id=name, ctx=ast.Load()), attr=str(attribute), ctx=ast.Store())
        return ast.Assign(targets=[target], value=values[2]) if isinstance(attribute, str) else None
    return statement if called in [f"{name}.{method}" for method in REGISTERING] else None


def unchained(tree: ast.Module) -> ast.Module:
    """Return the tree with ``x = A().start()`` as two statements, if the method ends in ``return self``."""
    owners = {node.name: node for node in walk(tree) if isinstance(node, ast.ClassDef)}
    edits = []
    for node in walk(tree):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
            continue
        call = node.value
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        made, attribute = call.func.value, call.func.attr
        owner = owners.get(made.func.id) if isinstance(made, ast.Call) and isinstance(made.func, ast.Name) else None
        methods = owner.body if owner is not None else []
        chosen = next((item for item in methods if isinstance(item, ast.FunctionDef) and item.name == attribute), None)
        if chosen is not None and chosen.args.args and returns_name(chosen.body[-1], chosen.args.args[0].arg):
            name = ast.Name(id=node.targets[0].id, ctx=ast.Load())
            started = ast.Call(func=ast.Attribute(name, attribute, ast.Load()), args=call.args, keywords=call.keywords)
            edits.append(Edit.of(node, [ast.Assign(targets=node.targets, value=made), ast.Expr(started)]))
    return apply(tree, edits) if edits else tree


def returns_name(statement: ast.stmt, name: str) -> bool:
    """Tell whether a statement is ``return self``, as methods have for chains of calls."""
    return isinstance(statement, ast.Return) and isinstance(statement.value, ast.Name) and statement.value.id == name
