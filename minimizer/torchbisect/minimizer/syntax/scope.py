"""Whether a candidate can bind its names: what can be known to fail for want of a name is never asked about."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Mapping

from torchbisect.minimizer.syntax.tree import Comprehension, children, walk

OF_CONTAINERS = frozenset(name for kind in (list, dict, set, str) for name in dir(kind))
"""What lists, dictionaries, sets and strings have."""
_ALWAYS = frozenset(dir(builtins)) | {"__file__", "__name__", "__doc__", "__spec__", "__class__", "__annotations__"}


def unbound(tree: ast.Module) -> frozenset[str]:
    """Names that are read where nothing can have bound them yet.

    The walk follows the order of evaluation. What runs later (the body of a function) may use any name that its
    surroundings bind anywhere; what a loop's body binds may be used anywhere in it. ``import *`` binds everything.
    """
    if any(isinstance(node, ast.ImportFrom) and any(name.name == "*" for name in node.names) for node in walk(tree)):
        return frozenset()
    order = _Walk(frozenset(), set())
    order.block(tree.body)
    order.run_deferred()
    return frozenset(order.missing)


def bound_in(nodes: Iterable[ast.AST]) -> set[str]:
    """Names that these nodes bind in their own scope, not those of functions and classes inside them."""
    found: set[str] = set()
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
            stack.extend(node.decorator_list)
            continue
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, Comprehension):
            # A walrus in a comprehension binds outside it; its own targets stay inside.
            found |= {item.target.id for item in walk(node) if isinstance(item, ast.NamedExpr)}
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            found.add(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {name.asname or name.name.split(".")[0] for name in node.names}
            continue
        else:
            name = getattr(node, "name", None) or getattr(node, "rest", None)
            if isinstance(name, str):
                found.add(name)
        stack.extend(children(node))
    return found


def references(scope: ast.AST, name: str) -> list[ast.Name]:
    """The mentions of a name that a module or a function binds; an inner function's own name is another one."""
    found: list[ast.Name] = []
    stack = children(scope)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name) and node.id == name:
            found.append(node)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) and name in _own_names(node):
            stack += [*node.args.defaults, *(item for item in node.args.kw_defaults if item is not None)]
            stack += getattr(node, "decorator_list", [])
        else:
            stack += children(node)
    return found


def _own_names(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> set[str]:
    body = [function.body] if isinstance(function, ast.Lambda) else function.body
    return {item.arg for item in parameters(function.args)} | (bound_in(body) - _released(body))


def _released(body: Iterable[ast.AST]) -> set[str]:
    """The names that a function declares ``global`` or ``nonlocal``."""
    declared = (ast.Global, ast.Nonlocal)
    return {name for item in body for node in in_own_scope(item) if isinstance(node, declared) for name in node.names}


def enclosing(above: Mapping[int, ast.AST], node: ast.AST) -> ast.AST:
    """The module or function in which a definition binds its name; ``above`` is ``tree.parents``."""
    outer = above[id(node)]
    while not isinstance(outer, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef)):
        outer = above[id(outer)]
    return outer


def members_read(nodes: Iterable[ast.AST]) -> Iterator[ast.Attribute]:
    """The attributes that are read and may be a member of one of the script's objects.

    What hangs on an imported name is the library's: ``torch.compile`` says nothing of a field called ``compile``.
    """
    nodes = list(nodes)
    imported = _imported(nodes)
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            root: ast.expr = node.value
            while isinstance(root, ast.Attribute):
                root = root.value
            if not (isinstance(root, ast.Name) and root.id in imported):
                yield node


def imported_in(tree: ast.AST) -> set[str]:
    """The names that imports bind, anywhere in a tree."""
    return _imported(walk(tree))


def _imported(nodes: Iterable[ast.AST]) -> set[str]:
    imports = [node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom))]
    return {alias.asname or alias.name.split(".")[0] for node in imports for alias in node.names}


def parameters(arguments: ast.arguments) -> list[ast.arg]:
    """All the parameters of a function, in order."""
    found = [*arguments.posonlyargs, *arguments.args]
    found += [arguments.vararg] if arguments.vararg else []
    found += arguments.kwonlyargs
    return found + ([arguments.kwarg] if arguments.kwarg else [])


def module_parameters(tree: ast.Module) -> list[str]:
    """Return the names of the attributes to which the script assigns a ``Parameter``."""
    return [
        node.targets[0].attr
        for node in walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Attribute)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func).endswith("Parameter")
    ]


class _Walk:
    """One scope, walked in the order of evaluation."""

    def __init__(self, outer: frozenset[str], bound: set[str], root: _Walk | None = None) -> None:
        self.outer = outer
        self.bound = bound
        self.missing: set[str] = set() if root is None else root.missing
        self.root = root or self
        self.deferred: list[tuple[ast.arguments, list[ast.AST], frozenset[str], set[str]]] = []

    def known(self, name: str) -> bool:
        return name in self.bound or name in self.outer or name in _ALWAYS

    def block(self, statements: Iterable[ast.AST]) -> None:
        for statement in statements:
            self.visit(statement)

    def visit(self, node: ast.AST | None) -> None:
        if node is None:
            return
        method = getattr(self, f"visit_{type(node).__name__}", None)
        if method is not None:
            method(node)
            return
        for child in children(node):
            self.visit(child)
        name = getattr(node, "name", None) or getattr(node, "rest", None)
        if isinstance(name, str):
            self.bound.add(name)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store):
            self.bound.add(node.id)
        elif not self.known(node.id):
            self.missing.add(node.id)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        self.block(node.targets)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        if isinstance(node.target, ast.Name) and not self.known(node.target.id):
            self.missing.add(node.target.id)
        self.visit(node.target)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit(node.annotation)
        self.visit(node.value)
        if node.value is not None or not isinstance(node.target, ast.Name):
            self.visit(node.target)

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.visit(node.iter)
        self.visit(node.target)
        self.bound |= bound_in(node.body)
        self.block(node.body + node.orelse)

    visit_AsyncFor = visit_For

    def visit_While(self, node: ast.While) -> None:
        self.visit(node.test)
        self.bound |= bound_in(node.body)
        self.block(node.body + node.orelse)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        self.bound |= bound_in([node])

    visit_ImportFrom = visit_Import

    def visit_Global(self, node: ast.Global) -> None:
        self.bound |= set(node.names)

    visit_Nonlocal = visit_Global

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self.visit(node.type)
        if node.name:
            self.bound.add(node.name)
        self.block(node.body)

    def _defer(self, arguments: ast.arguments, body: list[ast.AST]) -> None:
        for default in [*arguments.defaults, *arguments.kw_defaults]:
            self.visit(default)
        self.deferred.append((arguments, body, self.outer, self.bound))

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.block(node.decorator_list)
        for parameter in parameters(node.args):
            self.visit(parameter.annotation)
        self.visit(node.returns)
        self.block(getattr(node, "type_params", []))
        self._defer(node.args, list(node.body))
        self.bound.add(node.name)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._defer(node.args, [node.body])

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.block(getattr(node, "type_params", []))
        self.block([*node.decorator_list, *node.bases, *node.keywords])
        inner = _Walk(self.outer | self.bound, {"__module__", "__qualname__"}, self.root)
        inner.block(node.body)
        # Methods see what is round the class, not what is in it.
        self.deferred += [(arguments, body, self.outer, self.bound) for arguments, body, _, _ in inner.deferred]
        self.bound.add(node.name)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        before, met = set(self.bound), len(self.deferred)
        for generator in node.generators:
            self.visit(generator.iter)
            self.visit(generator.target)
            self.block(generator.ifs)
        self.block([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt])
        walrus = {item.target.id for item in walk(node) if isinstance(item, ast.NamedExpr)}
        # The names inside are gone again, but not for the functions made inside. The set is kept: it still grows.
        gone = self.bound - before - walrus
        self.bound -= gone
        self.deferred[met:] = [(args, body, outer | gone, bound) for args, body, outer, bound in self.deferred[met:]]

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = _comprehension

    def run_deferred(self) -> None:
        """Walk the functions that were met, now that their surroundings are complete."""
        for arguments, body, outer, bound in self.deferred:
            own = bound_in(body)
            released = _released(body)
            start = {parameter.arg for parameter in parameters(arguments)}
            inner = _Walk(
                frozenset((outer | bound) - (own - released)), start | (released & (outer | bound)), self.root
            )
            inner.block(body)
            inner.run_deferred()


def in_own_scope(node: ast.AST) -> Iterable[ast.AST]:
    """A node and what lies in its own scope."""
    stack = [node]
    while stack:
        item = stack.pop()
        yield item
        if not isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            stack.extend(children(item))
