"""Calls of a function and the parameters that they bind."""

from __future__ import annotations

import ast

from torchbisect.minimizer.syntax.edits import copied
from torchbisect.minimizer.syntax.scope import parameters, references
from torchbisect.minimizer.syntax.tree import walk


def arguments_of(
    function: ast.FunctionDef | ast.Lambda, call: ast.Call, *, skip: int = 0
) -> dict[str, ast.expr] | None:
    """Return the expression that a call binds to each parameter, defaults included, by the parameter's name.

    Returns ``None`` where the binding cannot be read from the text. ``skip`` leaves out the first parameters, such
    as ``self``.
    """
    positional = [*function.args.posonlyargs, *function.args.args][skip:]
    if any(isinstance(item, ast.Starred) for item in call.args) or any(
        keyword.arg is None for keyword in call.keywords
    ):
        return None
    found = {parameter.arg: value for parameter, value in zip(positional, call.args)}
    if function.args.vararg is not None:
        found[function.args.vararg.arg] = ast.Tuple(elts=call.args[len(positional) :], ctx=ast.Load())
    elif len(call.args) > len(positional):
        return None
    found |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
    defaults = dict(
        zip([item.arg for item in positional][len(positional) - len(function.args.defaults) :], function.args.defaults)
    )
    defaults |= {
        item.arg: value for item, value in zip(function.args.kwonlyargs, function.args.kw_defaults) if value is not None
    }
    names = [item.arg for item in parameters(function.args)][skip:]
    whole = {name: found.get(name, defaults.get(name)) for name in names}
    if set(found) - set(names) or any(value is None for value in whole.values()):
        return None
    return {name: value for name, value in whole.items() if value is not None}


def without_parameter(arguments: ast.arguments, number: int) -> ast.arguments:
    """Return the parameters without the one at a position, and without its default."""
    new = copied(arguments)
    first = len(new.posonlyargs) + len(new.args) - len(new.defaults)
    if number >= first:
        del new.defaults[number - first]
    if number < len(new.posonlyargs):
        del new.posonlyargs[number]
    else:
        del new.args[number - len(new.posonlyargs)]
    return new


def only_call(tree: ast.Module, function: ast.FunctionDef) -> ast.Call | None:
    """Return the only call of a function, also through ``torch.compile``; ``None`` if there are none or several."""
    named = references(tree, function.name)
    if len(named) != 1:
        return None
    for node in walk(tree):
        if isinstance(node, ast.Call):
            through = isinstance(node.func, ast.Call) and named[0] in node.func.args
            if node.func is named[0] or through:
                return node
    return None
