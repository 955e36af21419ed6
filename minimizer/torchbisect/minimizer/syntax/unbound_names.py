"""Names that a script reads before anything can have bound them.

A candidate with such a name fails with ``NameError``, so it is never asked about.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable

from torchbisect.minimizer.syntax.scope import bound_names, parameters, released_names
from torchbisect.minimizer.syntax.tree import children, walk

_ALWAYS = frozenset(dir(builtins)) | {"__file__", "__name__", "__doc__", "__spec__", "__class__", "__annotations__"}


def unbound_names(tree: ast.Module) -> frozenset[str]:
    """Return the names that are read where nothing can have bound them yet.

    The walk follows the order of evaluation. The body of a function runs later, so it may read any name that its
    surroundings bind anywhere. A name that the body of a loop binds, not only by ``+=``, may be read anywhere in that
    body. ``import *`` binds everything.

    pyflakes was measured in its place: it takes twice as long, as it parses the text of each candidate anew, and it
    also reports names that an earlier iteration of a loop binds.
    """
    if any(isinstance(node, ast.ImportFrom) and any(name.name == "*" for name in node.names) for node in walk(tree)):
        return frozenset()
    module = _ScopeWalk(frozenset(), set())
    module.block(tree.body)
    module.run_deferred()
    return frozenset(module.missing)


_IMPORTABLE = frozenset({"argparse", "collections", "math", "types"})
"""The modules that a traced value may name."""


def with_imports(tree: ast.Module) -> ast.Module:
    """Return a script with imports of the modules that a traced value in it names."""
    missing = sorted(unbound_names(tree) & _IMPORTABLE)
    if not missing:
        return tree
    added = ast.Import(names=[ast.alias(name=name) for name in missing], lineno=0)
    return ast.Module(body=[added, *tree.body], type_ignores=[])


class _ScopeWalk:
    """Walk of one scope in the order of evaluation; ``deferred`` holds the functions whose bodies run later."""

    def __init__(self, outer: frozenset[str], bound: set[str], root: _ScopeWalk | None = None) -> None:
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
        self.bound |= bound_names(node.body, augmented=False)
        self.block(node.body + node.orelse)

    visit_AsyncFor = visit_For

    def visit_While(self, node: ast.While) -> None:
        self.visit(node.test)
        self.bound |= bound_names(node.body, augmented=False)
        self.block(node.body + node.orelse)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        self.bound |= bound_names([node])

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
        inner = _ScopeWalk(self.outer | self.bound, {"__module__", "__qualname__"}, self.root)
        inner.block(node.body)
        # Methods see the names around the class, not those in it.
        self.deferred += [(arguments, body, self.outer, self.bound) for arguments, body, _, _ in inner.deferred]
        self.bound.add(node.name)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        before, count = set(self.bound), len(self.deferred)
        for generator in node.generators:
            self.visit(generator.iter)
            self.visit(generator.target)
            self.block(generator.ifs)
        self.block([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt])
        walrus = {item.target.id for item in walk(node) if isinstance(item, ast.NamedExpr)}
        # The targets are unbound again, but not for functions made inside. `bound` stays the same set: it still grows.
        targets = self.bound - before - walrus
        self.bound -= targets
        self.deferred[count:] = [
            (args, body, outer | targets, bound) for args, body, outer, bound in self.deferred[count:]
        ]

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = _comprehension

    def run_deferred(self) -> None:
        """Walk the bodies of the functions met, now that their surroundings are complete."""
        for arguments, body, outer, bound in self.deferred:
            own = bound_names(body)
            released = released_names(body)
            start = {parameter.arg for parameter in parameters(arguments)}
            inner = _ScopeWalk(
                frozenset((outer | bound) - (own - released)), start | (released & (outer | bound)), self.root
            )
            inner.block(body)
            inner.run_deferred()
