"""A module or a class becomes functions and plain names.

``model = Net(cfg)`` with ``Net.__init__`` and ``Net.forward`` becomes the lines of ``__init__`` with ``self.lin`` as ``lin``, and a function
``model(x)`` that reads them. A layer becomes what it computes: ``nn.Linear(4, 4)(x)`` to ``x @ w``, or nothing. What deletion can't do,
since ``self`` ties all of it together. Grows a little at times, so it is a venture. Leaves classes that are made in several places.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchbisect.minimizer.candidates import Search
from torchbisect.minimizer.passes import unused
from torchbisect.minimizer.passes.inline import arguments_of, names_of, substituted
from torchbisect.minimizer.scope import bound_in, parameters
from torchbisect.minimizer.tree import Edit, Function, apply, copied


def run(search: Search) -> None:
    """Each class in turn, innermost last."""
    tried: set[str] = set()
    while True:
        for tree in flattened(search.tree):
            key = ast.dump(tree)
            if key in tried:
                continue
            tried.add(key)
            if search.attempt(tree) or search.venture(tree, _finish, 10):
                break
        else:
            break
    search.scan(_layers)


def _finish(search: Search) -> None:
    from torchbisect.minimizer.passes import substitute

    unused.run(search)
    substitute.run(search)


def flattened(tree: ast.Module) -> Iterator[ast.Module]:
    """Each class that is made in one place by a plain assignment, taken apart there."""
    for owner in ast.walk(tree):
        if not isinstance(owner, ast.ClassDef):
            continue
        made = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign)
            and len(node.targets) == 1
            and isinstance(node.targets[0], (ast.Name, ast.Attribute))
            and isinstance(node.value, ast.Call)
            and isinstance(node.value.func, ast.Name)
            and node.value.func.id == owner.name
        ]
        named = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == owner.name]
        if len(made) == 1 and len(named) == 1:
            statements = _apart(tree, owner, made[0])
            if statements is not None:
                changed = apply(tree, [Edit.of(made[0], statements), Edit.remove(owner)])
                target = made[0].targets[0]
                yield _members_as_names(changed, target)


def _apart(tree: ast.Module, owner: ast.ClassDef, made: ast.Assign) -> list[ast.AST] | None:
    """What takes the place of making the object: its ``__init__``, then each method as a function."""
    methods = {item.name: item for item in owner.body if isinstance(item, ast.FunctionDef)}
    if any(isinstance(item, ast.Return) and item.value for item in ast.walk(methods.get("__init__", ast.Pass()))):
        return None
    target = made.targets[0]
    prefix = "" if isinstance(target, ast.Name) else "self."
    taken = names_of(tree, but=owner)
    result: list[ast.AST] = [ast.Assign(targets=[_member(prefix, item.targets[0].id)], value=item.value) for item in owner.body
                             if isinstance(item, ast.Assign) and isinstance(item.targets[0], ast.Name)]  # fmt: skip
    assert isinstance(made.value, ast.Call)
    init = methods.pop("__init__", None)
    if init is not None:
        bound = arguments_of(init, made.value, skip=1)
        if bound is None or not init.args.args:
            return None
        me = init.args.args[0].arg
        clash = (bound_in(init.body) | set(bound)) & taken
        renames = {name: f"{name}_" for name in clash}
        result += [ast.Assign(targets=[ast.Name(id=renames.get(name, name), ctx=ast.Store())], value=value)
                   for name, value in bound.items() if ast.unparse(value) != renames.get(name, name)]  # fmt: skip
        for statement in init.body:
            if "super()" not in ast.unparse(statement):
                result.append(_unselfed(substituted(statement, renames, {}), me, prefix))
    elif made.value.args or made.value.keywords:
        return None
    own_name = target.id if isinstance(target, ast.Name) else None
    for name, method in methods.items():
        if method.decorator_list or not method.args.args:
            return None
        new = copied(method)
        me = new.args.args.pop(0).arg
        new.name = own_name or name if name in ("forward", "__call__") else name
        new.body = [_unselfed(statement, me, prefix) for statement in new.body]
        result.append(new)
    if prefix:
        return None
    return result


def _member(prefix: str, name: str) -> ast.expr:
    if prefix:
        return ast.Attribute(value=ast.Name(id="self", ctx=ast.Load()), attr=name, ctx=ast.Store())
    return ast.Name(id=name, ctx=ast.Store())


def _unselfed(statement: ast.stmt, me: str, prefix: str) -> ast.stmt:
    """``self.x`` as ``x``."""

    class Rename(ast.NodeTransformer):
        def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
            self.generic_visit(node)
            if isinstance(node.value, ast.Name) and node.value.id == me and not prefix:
                return ast.Name(id=node.attr, ctx=node.ctx)
            return node

    new = Rename().visit(copied(statement))
    assert isinstance(new, ast.stmt)
    return new


def _members_as_names(tree: ast.Module, target: ast.expr) -> ast.Module:
    """``model.lin`` as ``lin``, now that there is no object."""
    if not isinstance(target, ast.Name):
        return tree
    bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {node.name for node in ast.walk(tree) if isinstance(node, Function)}
    edits = [
        Edit.of(node, ast.Name(id=node.attr, ctx=node.ctx))
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == target.id
        and node.attr in bound
    ]
    return apply(tree, edits)


def _layers(tree: ast.Module) -> Iterator[Edit]:
    """A layer that is made and called, as nothing, as a product, as a tensor."""
    made: dict[str, tuple[ast.Assign, ast.Call]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.value, ast.Call):
            called = ast.unparse(node.value.func)
            if called.split(".")[0] in ("nn", "torch") and called.split(".")[-1][:1].isupper():
                made[ast.unparse(node.targets[0])] = (node, node.value)
    for name, (assign, call) in made.items():
        uses = [
            node
            for node in ast.walk(tree)
            if isinstance(node, (ast.Name, ast.Attribute)) and _load(node) and ast.unparse(node) == name
        ]
        calls = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and ast.unparse(node.func) == name and node.args
        ]
        if calls and len(uses) == len(calls):
            yield Edit(((assign, None), *((node, node.args[0]) for node in calls)))
            if ast.unparse(call.func).endswith("Linear") and len(call.args) >= 2:
                weight = ast.Call(
                    func=ast.Attribute(value=ast.Name(id="torch", ctx=ast.Load()), attr="ones", ctx=ast.Load()),
                    args=list(call.args[:2]),
                    keywords=[ast.keyword(arg="requires_grad", value=ast.Constant(True))],
                )
                products = [
                    (node, ast.BinOp(left=node.args[0], op=ast.MatMult(), right=_read(assign.targets[0])))
                    for node in calls
                ]
                yield Edit(((call, weight), *products))
        if ast.unparse(call.func).endswith("Parameter") and call.args:
            yield Edit.of(call, call.args[0])
            inner = call.args[0]
            if isinstance(inner, ast.Call):
                keyword = ast.keyword(arg="requires_grad", value=ast.Constant(True))
                yield Edit.of(call, ast.Call(func=inner.func, args=inner.args, keywords=[*inner.keywords, keyword]))


def _load(node: ast.Name | ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Load)


def _read(target: ast.expr) -> ast.expr:
    new = copied(target)
    if isinstance(new, (ast.Name, ast.Attribute)):
        new.ctx = ast.Load()
    return new


def free_names(function: ast.FunctionDef) -> set[str]:
    """Names that a function reads and doesn't bind itself."""
    own = {item.arg for item in parameters(function.args)} | bound_in(function.body)
    return {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and node.id not in own}
