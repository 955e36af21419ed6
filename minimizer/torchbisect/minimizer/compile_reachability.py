"""Tell whether a script calls what it compiles. A candidate that does not cannot show the mismatch."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from torchbisect.minimizer.syntax.torch_names import TorchNames
from torchbisect.minimizer.syntax.tree import Function, children, walk


def compiles_but_never_calls(tree: ast.Module, torch_names: TorchNames) -> bool:
    """Tell whether the script compiles something, but no statement that runs mentions the compiled function.

    The statements that run are found by name, starting at module level. A function runs if a running statement
    mentions its name; the methods of a class run with the class. So the answer is yes only if no mention is left.
    """
    running = list(_running_nodes(tree, torch_names))
    mentioned = {name for node in running for name in _mentioned_names(node)}
    if any(name in mentioned for node in running for name in _compiled_names(node, torch_names)):
        return False
    by_name = {id(part) for node in running for root in _named_compilers(node, torch_names) for part in walk(root)}
    if any(torch_names.is_compiler(node) for node in running if id(node) not in by_name):
        return False
    return torch_names.mentions_compiler(tree)


def _running_nodes(tree: ast.Module, torch_names: TorchNames) -> Iterator[ast.AST]:
    """Yield the nodes that run, computed as a fixpoint over the names that they mention."""
    functions = [node for node in walk(tree) if isinstance(node, Function)]
    mentioned: set[str] = set()
    added = list(_evaluated_with(tree.body, torch_names))
    done: set[int] = set()
    while added:
        yield from added
        done |= {id(node) for node in added}
        mentioned |= {name for node in added for name in _mentioned_names(node)}
        bodies = [item for function in functions if function.name in mentioned for item in function.body]
        added = [node for node in _evaluated_with(bodies, torch_names) if id(node) not in done]


def _evaluated_with(statements: Iterable[ast.AST], torch_names: TorchNames) -> Iterator[ast.AST]:
    """Yield the nodes that run when these statements run; of a function only what its definition evaluates."""
    stack = list(statements)
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, Function):
            stack += [*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)]
            if not all(map(torch_names.mentions_compiler, node.decorator_list)):
                # Any other decorator may call the function.
                stack += node.body
        elif isinstance(node, ast.ClassDef):
            stack += children(node)
            stack += [item for method in node.body if isinstance(method, Function) for item in method.body]
        else:
            stack += children(node)


def _mentioned_names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        yield node.attr
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value


def _named_compilers(node: ast.AST, torch_names: TorchNames) -> list[ast.expr]:
    """Return the expressions of a statement that compile something which can only be called by its name."""
    if isinstance(node, Function):
        return [item for item in node.decorator_list if torch_names.mentions_compiler(item)]
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and torch_names.is_compiler(node.value.func):
        return [node.value.func]
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return [node.value.func] if torch_names.names_compile(node.value.func) else []
    return []


def _compiled_names(node: ast.AST, torch_names: TorchNames) -> Iterator[str]:
    """Yield the names under which a statement stores what it compiles."""
    if not _named_compilers(node, torch_names):
        return
    if isinstance(node, Function):
        yield node.name
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            yield from (part.id for part in walk(target) if isinstance(part, ast.Name))
            yield from (part.attr for part in walk(target) if isinstance(part, ast.Attribute))
