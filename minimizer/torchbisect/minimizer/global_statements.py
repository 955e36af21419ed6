"""The statements of a script that a call of one of its functions may need before it."""

from __future__ import annotations

import ast
import builtins

from torchbisect.minimizer.syntax.edits import copied
from torchbisect.minimizer.syntax.scope import bound_names, variables_in
from torchbisect.minimizer.syntax.torch_names import TorchNames
from torchbisect.minimizer.syntax.tree import Function, walk


def global_statements(tree: ast.Module) -> list[ast.stmt]:
    """Return imports, definitions, plain global values, and statements anywhere that set global state of torch."""
    found: list[ast.stmt] = []
    torch_names = TorchNames.of(tree)
    for statement in tree.body:
        if isinstance(statement, (ast.Import, ast.ImportFrom, *Function, ast.ClassDef)):
            found.append(_without_compile(statement, torch_names))
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)) and not _runs_script_function(
            tree, statement, torch_names
        ):
            found.append(statement)
    settings = [node for node in walk(tree) if isinstance(node, ast.stmt) and _sets_global_state(node)]
    torch_settings: dict[str, ast.stmt] = {}
    for node in settings:
        key = ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else ast.unparse(node)
        torch_settings.setdefault(key, node)
    imports = [alias for item in found if isinstance(item, ast.Import) for alias in item.names]
    if not any((alias.asname or alias.name) == "torch" for alias in imports):
        found.insert(0, ast.Import(names=[ast.alias(name="torch")]))
    return _with_bound_names(found + [item for item in torch_settings.values() if item not in found])


def _with_bound_names(statements: list[ast.stmt]) -> list[ast.stmt]:
    """Drop statements whose names are not bound: a setting inside a function may read a local name."""
    while True:
        bound = bound_names(statements) | set(dir(builtins))
        kept = [
            item
            for item in statements
            if isinstance(item, (*Function, ast.ClassDef)) or _names_read(item) <= bound | bound_names([item])
        ]
        if len(kept) == len(statements):
            return kept
        statements = kept


def _names_read(statement: ast.stmt) -> set[str]:
    own = {node.id for node in walk(statement) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    own |= {node.arg for node in walk(statement) if isinstance(node, ast.arg)}
    return variables_in(statement) - own


def _without_compile(node: ast.stmt, torch_names: TorchNames) -> ast.stmt:
    """Return a definition without the decorators that compile it or, of a class, its methods."""
    decorators = [item for function in _functions(node) for item in function.decorator_list]
    if not any(map(torch_names.mentions_compile, decorators)):
        return node
    new = copied(node)
    for function in _functions(new):
        function.decorator_list = [item for item in function.decorator_list if not torch_names.mentions_compile(item)]
    return new


def _functions(node: ast.stmt) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Return a function alone, or the methods of a class."""
    inside = node.body if isinstance(node, ast.ClassDef) else [node]
    return [item for item in inside if isinstance(item, Function)]


def _runs_script_function(tree: ast.Module, statement: ast.stmt, torch_names: TorchNames) -> bool:
    """Tell whether a statement names one of the script's functions or compiles something."""
    functions = {node.name for node in tree.body if isinstance(node, Function)}
    return torch_names.mentions_compile(statement) or any(
        isinstance(node, ast.Name) and node.id in functions for node in walk(statement)
    )


def _sets_global_state(node: ast.stmt) -> bool:
    """Tell whether a statement sets global state: ``torch._dynamo.config.x = True``, ``torch.set_default_dtype()``."""
    if isinstance(node, ast.Assign):
        target = ast.unparse(node.targets[0])
        return (
            target.startswith("torch.")
            and isinstance(node.value, ast.Constant)
            and node.value.value not in (False, None)
        )
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return ast.unparse(node.value.func).startswith(("torch.set_", "torch.backends.", "torch.use_"))
    return False
