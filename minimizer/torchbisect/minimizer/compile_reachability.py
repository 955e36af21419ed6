"""Whether what a script compiles is called at all: what can't be is never asked about."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from torchbisect.minimizer.syntax.tree import Function, children, walk

_WORDS = ("compile", "optimize", "export", "jit", "script", "trace")
_COMPILERS = frozenset({"compile", "optimize", "export", "script", "trace", "make_fx", "aot_function", "aot_module"})


def names_compile(node: ast.AST) -> bool:
    """Any word of a compiler's: ``torch.compile``, ``model.compile``, ``torch._dynamo.optimize``, ``export``."""
    if isinstance(node, ast.Attribute):
        return any(word in node.attr for word in _WORDS)
    if isinstance(node, ast.alias):
        return any(word in f"{node.name} {node.asname}" for word in _WORDS)
    return isinstance(node, ast.Name) and any(word in node.id for word in _WORDS)


def compiler(node: ast.AST) -> bool:
    """A mention of what compiles, and not only of a setting or a name with such a word in it."""
    if isinstance(node, ast.Attribute):
        return node.attr in _COMPILERS
    return isinstance(node, ast.Name) and node.id in _COMPILERS


def compiles(expression: ast.AST) -> bool:
    """Whether what compiles is mentioned anywhere in an expression."""
    return any(map(compiler, walk(expression)))


def compiles_in_vain(tree: ast.Module) -> bool:
    """Whether the script compiles, but nothing that it runs mentions what comes of it.

    What runs is found by names, from the module's own statements on: a function runs if its name is mentioned by what
    runs, a class's methods run with the class. So it only says yes where no mention is left.
    """
    ran = list(_running(tree))
    mentioned = {name for node in ran for name in _mentions(node)}
    if any(name in mentioned for node in ran for name in _compiled_as(node)):
        return False
    by_name = {id(part) for node in ran for root in _makers(node) for part in walk(root)}
    if any(compiler(node) for node in ran if id(node) not in by_name):
        return False
    return any(compiler(node) for node in walk(tree))


def _running(tree: ast.Module) -> Iterator[ast.AST]:
    """The nodes of what runs, to a fixpoint over the names that it mentions."""
    functions = [node for node in walk(tree) if isinstance(node, Function)]
    mentioned: set[str] = set()
    fresh = list(_with(tree.body))
    done: set[int] = set()
    while fresh:
        yield from fresh
        done |= {id(node) for node in fresh}
        mentioned |= {name for node in fresh for name in _mentions(node)}
        bodies = [item for function in functions if function.name in mentioned for item in function.body]
        fresh = [node for node in _with(bodies) if id(node) not in done]


def _with(statements: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """What runs when these statements do; of a function that they define only what its definition runs."""
    stack = list(statements)
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, Function):
            stack += [*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)]
            if not all(compiles(item) for item in node.decorator_list):
                # Whatever else decorates it may call it.
                stack += node.body
        elif isinstance(node, ast.ClassDef):
            stack += children(node)
            stack += [item for method in node.body if isinstance(method, Function) for item in method.body]
        else:
            stack += children(node)


def _mentions(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        yield node.attr
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value


def _makers(node: ast.AST) -> list[ast.expr]:
    """The expressions of a statement that compile something which can only be called by its name."""
    if isinstance(node, Function):
        return [item for item in node.decorator_list if compiles(item)]
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and compiler(node.value.func):
        return [node.value.func]
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return [node.value.func] if ast.unparse(node.value.func) == "torch.compile" else []
    return []


def _compiled_as(node: ast.AST) -> Iterator[str]:
    """The names that lead to what a statement compiles."""
    if not _makers(node):
        return
    if isinstance(node, Function):
        yield node.name
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            yield from (part.id for part in walk(target) if isinstance(part, ast.Name))
            yield from (part.attr for part in walk(target) if isinstance(part, ast.Attribute))
