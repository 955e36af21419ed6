"""Assertions that compare a compiled call with the same call of the function that was compiled."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from itertools import islice

from torchbisect.minimizer.standalone.value_assertions import FLAGS, ObservedMismatch, gradients, read_flag, statement
from torchbisect.minimizer.syntax.edits import Edit, apply, copied
from torchbisect.minimizer.syntax.names import all_names, fresh_name
from torchbisect.minimizer.syntax.torch_names import TorchNames
from torchbisect.minimizer.syntax.tree import walk

# Ways to copy an argument. A clone loses the strides of a tensor whose elements overlap or have gaps between them.
_COPIES = (("other = {}.clone()",), ("import copy", "other = copy.deepcopy({})"))


def with_eager_comparisons(tree: ast.Module, mismatch: ObservedMismatch) -> Iterator[ast.Module]:
    """Yield the script with a comparison of a compiled call and the eager one, in several forms."""
    for changed, call, eager in _compiled_calls(tree):
        for gradient in gradients(changed, mismatch.place):
            check = _close("compiled", ast.unparse(gradient), mismatch)
            yield _with_gradient_comparison(changed, call, eager, ast.unparse(gradient), check)
        yield from _with_comparison(changed, call, eager, mismatch)
    yield from _with_forced_eager(tree, mismatch)


def _with_forced_eager(tree: ast.Module, mismatch: ObservedMismatch) -> Iterator[ast.Module]:
    """Yield a comparison for a last expression however it was compiled, with the stance that torch has from 2.6 on."""
    last = tree.body[-1]
    if isinstance(last, ast.Expr):
        text = ast.unparse(last)
        block = f"with torch.compiler.set_stance('force_eager'):\n    eager = {text}"
        yield _ending(tree.body[:-1], block, _close(text, "eager", mismatch))


def _compiled_calls(tree: ast.Module) -> Iterator[tuple[ast.Module, ast.Call, ast.expr]]:
    """Yield each call of a compiled function, with the script it is in and an expression for the eager function."""
    torch_names = TorchNames.of(tree)
    calls = [node for node in walk(tree) if isinstance(node, ast.Call)]
    for call in calls:
        if isinstance(call.func, ast.Call) and torch_names.is_compile(call.func) and call.func.args:
            yield tree, call, call.func.args[0]
    made = {
        node.targets[0].id: node.value.args[0]
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Call)
        if torch_names.is_compile(node.value) and node.value.args
    }
    yield from _calls_of(tree, made)
    for function in tree.body:
        if isinstance(function, ast.FunctionDef):
            compiled = [item for item in function.decorator_list if torch_names.is_compile(item)]
            if compiled:
                yield from _decorated_calls(tree, function, compiled[0], torch_names)


def _calls_of(tree: ast.Module, made: Mapping[str, ast.expr]) -> Iterator[tuple[ast.Module, ast.Call, ast.expr]]:
    """Yield the calls of compiled functions by their names, the last statement first, each with its eager function."""
    for line in reversed(tree.body):
        for node in walk(line):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in made:
                yield tree, node, made[node.func.id]


def _decorated_calls(
    tree: ast.Module, function: ast.FunctionDef, decorator: ast.expr, torch_names: TorchNames
) -> Iterator[tuple[ast.Module, ast.Call, ast.expr]]:
    """Yield the last call of a decorated function, compiled under another name: a decorator leaves none for eager.

    The only call is compiled where it stands. Of several, all call one compiled function: what it keeps from an earlier
    call may be what goes wrong.
    """
    keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
    func = decorator.func if isinstance(decorator, ast.Call) else decorator
    bare = copied(function)
    bare.decorator_list = [item for item in bare.decorator_list if not torch_names.is_compile(item)]
    name = ast.Name(id=function.name, ctx=ast.Load())
    wrapped = ast.Call(func=func, args=[name], keywords=keywords)
    uses = [
        node
        for node in walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function.name
    ]
    if len(uses) == 1:
        changed = apply(tree, [Edit(((function, bare), (uses[0].func, wrapped)))])
        for node in walk(changed):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Call) and torch_names.is_compile(node.func):
                yield changed, node, name
    elif uses:
        compiled = ast.Name(id=fresh_name("compiled", all_names(tree)), ctx=ast.Load())
        changed = apply(tree, [Edit(((function, bare), *((use.func, compiled) for use in uses)))])
        changed.body.insert(tree.body.index(function) + 1, statement(f"{compiled.id} = {ast.unparse(wrapped)}"))
        yield from islice(_calls_of(changed, {compiled.id: name}), 1)


def _with_comparison(
    tree: ast.Module, call: ast.Call, eager: ast.expr, mismatch: ObservedMismatch
) -> Iterator[ast.Module]:
    """Yield scripts that compare the two results, then scripts that compare what the two calls do to an argument."""
    eager_call = ast.unparse(ast.Call(func=eager, args=call.args, keywords=call.keywords))
    compiled_call = ast.unparse(call)
    last = tree.body[-1]
    is_last = isinstance(last, ast.Expr) and last.value is call
    before = tree.body[:-1] if is_last else tree.body

    flag = next((name for name in FLAGS if name == mismatch.attribute), None)
    if flag is not None:
        left, right = read_flag(f"({compiled_call})", flag), read_flag(f"({eager_call})", flag)
        yield _ending(before, f"assert {left} == {right}")
    yield _ending(before, _close(compiled_call, eager_call, mismatch))
    yield _ending(before, f"assert {compiled_call} == {eager_call}")
    if isinstance(last, ast.Expr) and not is_last and call in walk(last):
        eager_line = ast.unparse(apply(tree, [Edit.of(call.func, eager)]).body[-1])
        yield _ending(tree.body[:-1], _close(ast.unparse(last), eager_line, mismatch))
    for name in [item.id for item in call.args if isinstance(item, ast.Name)]:
        args = [_renamed(item, name) for item in call.args]
        on_clone = ast.unparse(ast.Call(func=eager, args=args, keywords=call.keywords))
        for copy in _COPIES:
            lines = [line.format(name) for line in copy]
            yield _ending(before, *lines, _close(compiled_call, on_clone, mismatch))
            yield _ending(before, *lines, on_clone, compiled_call, _close(name, "other", mismatch))


def _close(compiled: str, eager: str, mismatch: ObservedMismatch) -> str:
    """Return a comparison of two results.

    A NaN equals nothing, itself included, unless ``equal_nan`` is set. Where a shape or the like differs, another dtype
    would be another mismatch.
    """
    options = ", equal_nan=True" if "nan" in (mismatch.eager + mismatch.compiled).lower() else ""
    if mismatch.attribute in FLAGS and mismatch.attribute != "dtype":
        options += ", check_dtype=False"
    return f"torch.testing.assert_close({compiled}, {eager}{options})"


def _ending(before: list[ast.stmt], *lines: str) -> ast.Module:
    return ast.Module(body=[*before, *map(statement, lines)], type_ignores=[])


def _with_gradient_comparison(
    tree: ast.Module, call: ast.Call, eager: ast.expr, gradient: str, check: str
) -> ast.Module:
    """Return a script that repeats the statements with the eager function, and compares the two gradients."""
    first = next(number for number, line in enumerate(tree.body) if call in walk(line))
    again = apply(tree, [Edit.of(call.func, eager)]).body[first:]
    keep = statement(f"compiled, {gradient} = {gradient}, None")
    return ast.Module(body=[*tree.body, keep, *again, statement(check)], type_ignores=[])


def _renamed(item: ast.expr, name: str) -> ast.expr:
    return ast.Name(id="other", ctx=ast.Load()) if isinstance(item, ast.Name) and item.id == name else item
