"""Find the calls of a function by its name, and what a call gives for a parameter."""

from __future__ import annotations

import ast

from torchbisect.minimizer.syntax.tree import walk


def calls_of_name(tree: ast.Module, name: str) -> list[ast.Call]:
    """Return the calls of a name, also as ``torch.compile(name, ...)(...)`` and ``make()(...)``, which returns it."""
    found = []
    makers = {
        node.name
        for node in walk(tree)
        if isinstance(node, ast.FunctionDef)
        and isinstance(node.body[-1], ast.Return)
        and isinstance(node.body[-1].value, ast.Name)
        and node.body[-1].value.id == name
    }
    aliases = {name} | {
        node.targets[0].id
        for node in walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Call)
        and any(isinstance(item, ast.Name) and item.id == name for item in node.value.args)
    }
    for node in walk(tree):
        if isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Call) and called.args:
                called = called.args[0]
            if isinstance(called, ast.Call) and isinstance(called.func, ast.Name) and called.func.id in makers:
                found.append(node)
            if (isinstance(called, ast.Name) and called.id in aliases) or (
                isinstance(called, ast.Attribute) and called.attr == name
            ):
                found.append(node)
    return found


def argument_for(call: ast.Call, number: int, name: str) -> ast.expr | ast.keyword | None:
    """Return what a call gives for a parameter by its place or its name; ``None`` for nothing that can be told."""
    if any(isinstance(item, ast.Starred) for item in call.args):
        return None
    if number < len(call.args):
        return call.args[number]
    return next((keyword for keyword in call.keywords if keyword.arg == name), None)
