"""Rewrite to common forms: decorators, lambdas, ``torch.ones``, arguments instead of locals, short names.

Before and after::

    def helper(values):               @torch.compile
        weights = torch.ones(2)       def f(x):
        return values + weights           return x + torch.ones(2)
    torch.compile(helper)(data)       f(y)

``short_forms`` writes ``torch.ones`` where random numbers do not matter, ``torch.compile(f)`` as a decorator where
``f`` is only compiled, and a conditional expression for two ``return``. A function of one expression becomes a lambda,
or the function that it calls. ``inputs`` turns a tensor that is made inside a compiled function into its argument.
Cutting a data flow leaves constructors there. They are traced like any operation, and a maintainer would look for the
input. ``names`` gives conventional short names: a name that says what a tensor meant in a program says nothing in a bug
report.

``inputs`` may cost a few nodes. So it runs last, and no other pass undoes it. Names of imports and attributes
stay, and functions that are called in several places keep their tensors.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit, Replacement, apply, copied
from torchbisect.minimizer.syntax.names import short_name, variable_names, with_values
from torchbisect.minimizer.syntax.scope import arguments_of, bound_names, only_call, parameters, references
from torchbisect.minimizer.syntax.torch_names import TENSOR_CONSTRUCTORS, TorchNames
from torchbisect.minimizer.syntax.tree import Function, expression, preorder, walk


def short_forms(search: ReductionSearch) -> None:
    """Replace constructors together and then one by one, then compile calls."""
    edits = list(_constructor_edits(search.tree))
    if len(edits) > 1:
        search.delta_debug(edits)
    search.scan(_constructor_edits)
    search.scan(_conditional_results)
    search.scan(_compile_edits)


_TO_ONES = frozenset(name for name, one in TENSOR_CONSTRUCTORS.items() if one.sizes is not None) - {"ones"}
"""The constructors that ``torch.ones`` with the same sizes can replace."""


def _constructor_edits(tree: ast.Module) -> Iterator[Edit]:
    """Return edits from ``torch.randn(2, 3)``, ``torch.arange(4)`` and the like to ``torch.ones``.

    A literal of equal numbers becomes ``torch.full``, whose size can change with the other sizes.
    """
    torch_names = TorchNames.of(tree)
    for node in preorder(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
            continue
        name = node.func.attr
        if name.endswith("_like") and name[:-5] in _TO_ONES:
            new, args = "ones_like", node.args
        elif torch_names.constructor(node.func) in _TO_ONES:
            new, args = "ones", node.args[TENSOR_CONSTRUCTORS[name].sizes or slice(None)]
        elif torch_names.constructor(node.func) == "tensor":
            new, args = "full", _size_and_value(node.args[0])
        else:
            continue
        if args:
            func = ast.Attribute(value=node.func.value, attr=new, ctx=ast.Load())
            yield Edit.of(node, ast.Call(func=func, args=args, keywords=node.keywords))


def _size_and_value(literal: ast.expr) -> list[ast.expr]:
    """Return the arguments of ``torch.full`` for a nested list of equal items; none for another literal."""
    sizes: list[ast.expr] = []
    items = [literal]
    while all(isinstance(item, ast.List) for item in items):
        rows = [item.elts for item in items if isinstance(item, ast.List)]
        if not rows[0] or any(len(row) != len(rows[0]) for row in rows):
            return []
        sizes.append(ast.Constant(len(rows[0])))
        items = [item for row in rows for item in row]
    same = len({ast.dump(item) for item in items}) == 1
    return [ast.Tuple(sizes, ast.Load()), items[0]] if sizes and same else []


def _conditional_results(tree: ast.Module) -> Iterator[Edit]:
    """Return edits from ``if a: return b`` and ``return c`` at a function's end to ``return b if a else c``."""
    for function in walk(tree):
        *_, branch, last = [None, *function.body] if isinstance(function, ast.FunctionDef) else [None, None]
        if isinstance(branch, ast.If) and isinstance(last, ast.Return) and last.value is not None and not branch.orelse:
            (first, *more) = branch.body
            if isinstance(first, ast.Return) and first.value is not None and not more:
                chosen = ast.IfExp(test=branch.test, body=first.value, orelse=last.value)
                yield Edit(((branch, ast.Return(value=chosen)), (last, None)))


def _compile_edits(tree: ast.Module) -> Iterator[Edit]:
    """Return the edits of each function of the script that is only compiled."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield from _as_decorator(tree, node)
            yield from _as_callee(tree, node)
            yield from _as_lambda(tree, node)


def _compiles_name(node: ast.AST, name: str, torch_names: TorchNames) -> bool:
    """Tell whether a node is ``torch.compile(name, ...)``."""
    return (
        isinstance(node, ast.Call)
        and torch_names.is_compile(node)
        and bool(node.args)
        and isinstance(node.args[0], ast.Name)
        and node.args[0].id == name
    )


def _as_decorator(tree: ast.Module, function: ast.FunctionDef) -> Iterator[Edit]:
    named = references(tree, function.name)
    torch_names = TorchNames.of(tree)
    calls = [node for node in walk(tree) if _compiles_name(node, function.name, torch_names)]
    if len(named) == 1 and len(calls) == 1 and not function.decorator_list:
        call = calls[0]
        assert isinstance(call, ast.Call)
        decorator: ast.expr = ast.Call(func=call.func, args=[], keywords=call.keywords) if call.keywords else call.func
        new = ast.FunctionDef(
            name=function.name, args=function.args, body=function.body, decorator_list=[decorator], returns=None
        )
        yield Edit(((function, new), (call, ast.Name(id=function.name, ctx=ast.Load()))))


def _as_lambda(tree: ast.Module, function: ast.FunctionDef) -> Iterator[Edit]:
    """Return the edit that replaces a function of one expression, which is only compiled, by a lambda."""
    named, value = references(tree, function.name), _only_value(function)
    torch_names = TorchNames.of(tree)
    compiled = any(_compiles_name(node, function.name, torch_names) for node in walk(tree))
    if len(named) == 1 and compiled and not function.decorator_list and value is not None:
        yield Edit(((function, None), (named[0], ast.Lambda(args=function.args, body=value))))


def _only_value(function: ast.FunctionDef) -> ast.expr | None:
    only = function.body[0]
    return only.value if len(function.body) == 1 and isinstance(only, (ast.Return, ast.Expr)) else None


def _as_callee(tree: ast.Module, function: ast.FunctionDef) -> Iterator[Edit]:
    """Return the edit that compiles what a function calls, ``torch.compile(torch.any)(y)``, for a function of one call.

    A method of a tensor is called as ``torch.Tensor.add_``.
    """
    torch_names, call, value = TorchNames.of(tree), only_call(tree, function), _only_value(function)
    if call is None or not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return
    compiled = _compiled_through(function, call, torch_names)
    bound = arguments_of(function, call)
    if compiled is None or bound is None:
        return
    callee, given = value.func, value.args
    if isinstance(callee.value, ast.Name) and callee.value.id in bound:
        given = [callee.value, *given]
        callee = ast.Attribute(expression("torch.Tensor"), callee.attr, ast.Load())
    if torch_names.full_name(callee) is not None:
        compiled.args[:1] = [callee]
        yield Edit(((function, None), (call, with_values(ast.Call(compiled, given, value.keywords), bound))))


def _compiled_through(function: ast.FunctionDef, call: ast.Call, torch_names: TorchNames) -> ast.Call | None:
    """Return the call of ``torch.compile`` through which a function is called, with the function as its argument."""
    if isinstance(call.func, ast.Call) and not function.decorator_list:
        return copied(call.func) if torch_names.is_compile(call.func) else None
    if len(function.decorator_list) != 1 or not torch_names.is_compile(function.decorator_list[0]):
        return None
    decorator = function.decorator_list[0]
    if isinstance(decorator, ast.Call):
        return None if decorator.args else ast.Call(decorator.func, [], decorator.keywords)
    return ast.Call(decorator, [], [])


_CONSTRUCTORS = TENSOR_CONSTRUCTORS.keys() - {"randint", "tensor"}


def inputs(search: ReductionSearch) -> None:
    """Turn one tensor after the other into an argument as long as the mismatch stays."""
    while any(search.attempt_rewrite(tree) for tree in _with_inputs(search.tree)):
        pass


def _with_inputs(tree: ast.Module) -> Iterator[ast.Module]:
    """Return trees with one more argument, for each constructor in a function that is called in one place."""
    for function in tree.body:
        if not isinstance(function, ast.FunctionDef) or function.args.vararg or function.args.kwonlyargs:
            continue
        call = only_call(tree, function)
        if call is None or call.keywords:
            continue
        for made in _constructed_inside(function, TorchNames.of(tree)):
            name = short_name(variable_names(function))
            new = copied(function.args)
            new.args.append(ast.arg(arg=name))
            longer = ast.Call(func=call.func, args=[*call.args, copied(made)], keywords=[])
            yield apply(
                tree, [Edit(((made, ast.Name(id=name, ctx=ast.Load())), (function.args, new))), Edit.of(call, longer)]
            )


def _constructed_inside(function: ast.FunctionDef, torch_names: TorchNames) -> Iterator[ast.Call]:
    """Return constructors of inputs: those that require gradients, or any if the function has no parameter."""
    bare = not parameters(function.args)
    for statement in function.body:
        for node in walk(statement):
            if not isinstance(node, ast.Call):
                continue
            made = torch_names.constructor(node.func) in _CONSTRUCTORS
            if made and (bare or any(keyword.arg == "requires_grad" for keyword in node.keywords)):
                yield node


_VALUE_NAMES = ("x", "y", "z", "w", "a", "b", "c", "d", "e", "u", "v", "p", "q", "r", "s", "t")
_FUNCTION_NAMES = ("f", "g", "h", "k")
_CLASS_NAMES = ("Model", "A", "B", "C", "D")


def names_together(search: ReductionSearch) -> None:
    """Rename everything in one question.

    This runs early too. The last round asks again about all that a late renaming changed.
    """
    names = _new_names(search.tree)
    if names:
        search.attempt_rewrite(_renamed(search.tree, names))


def names(search: ReductionSearch) -> None:
    """Rename everything in one question, else one name after the other."""
    names = _new_names(search.tree)
    if names and not search.attempt_rewrite(_renamed(search.tree, names)):
        for old, new in names.items():
            if new not in _all_names(search.tree):
                search.attempt_rewrite(_renamed(search.tree, {old: new}))


def _new_names(tree: ast.Module) -> dict[str, str]:
    """Return a new name for each name that the script binds, in the order in which they come."""
    kinds = dict(_bound_names(tree))
    imports = [node for node in walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    imported = {alias.asname or alias.name.split(".")[0] for node in imports for alias in node.names}
    called = {item.arg for node in walk(tree) if isinstance(node, ast.Call) for item in node.keywords}
    kept = {name for name in _all_names(tree) if name not in kinds} | imported
    found: dict[str, str] = {}
    for name, pool in kinds.items():
        if name in imported or name in called or name.startswith("__"):
            continue
        taken = kept | set(found.values())
        free = [new for new in pool if new not in taken]
        if name not in found:
            found[name] = free[0] if free else name
    return {old: new for old, new in found.items() if old != new} if len(set(found.values())) == len(found) else {}


def _bound_names(tree: ast.Module) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each name that the script binds, with the conventional names for its kind; attributes keep their names."""
    owners = [node for node in walk(tree) if isinstance(node, ast.ClassDef)]
    methods = {id(item) for owner in owners for item in owner.body}
    fields = bound_names(item for owner in owners for item in owner.body if not isinstance(item, Function))
    yield from ((name, pool) for name, pool in _bindings(tree, methods) if name not in fields)


def _bindings(tree: ast.Module, methods: set[int]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each name that is bound anywhere but that of a method, with the conventional names for its kind."""
    for node in preorder(tree):
        if isinstance(node, Function):
            if id(node) not in methods:
                yield node.name, _FUNCTION_NAMES
            names = [item.arg for item in parameters(node.args)]
            for name in names:
                if not (id(node) in methods and name in ("self", "ctx", "cls")):
                    yield name, _VALUE_NAMES
        elif isinstance(node, ast.Lambda):
            yield from ((item.arg, _VALUE_NAMES) for item in parameters(node.args))
        elif isinstance(node, ast.ClassDef):
            yield node.name, _CLASS_NAMES
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, _VALUE_NAMES


def _all_names(tree: ast.Module) -> set[str]:
    """Return all names of variables, parameters, functions and classes."""
    return {node.id for node in walk(tree) if isinstance(node, ast.Name)} | {
        node.arg for node in walk(tree) if isinstance(node, ast.arg)
    } | {node.name for node in walk(tree) if isinstance(node, (*Function, ast.ClassDef))}  # fmt: skip


def _renamed(tree: ast.Module, names: dict[str, str]) -> ast.Module:
    changes: list[tuple[ast.AST, Replacement]] = []
    methods = {id(item) for owner in walk(tree) if isinstance(owner, ast.ClassDef) for item in owner.body}
    new = copied(tree)
    for old_node, node in zip(preorder(tree), preorder(new)):
        if isinstance(node, ast.Name):
            node.id = names.get(node.id, node.id)
        elif isinstance(node, ast.arg):
            node.arg = names.get(node.arg, node.arg)
        elif isinstance(node, (*Function, ast.ClassDef)) and id(old_node) not in methods:
            node.name = names.get(node.name, node.name)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            node.names = [names.get(name, name) for name in node.names]
        elif isinstance(node, ast.ExceptHandler) and node.name:
            node.name = names.get(node.name, node.name)
    return apply(new, [Edit(tuple(changes))])
