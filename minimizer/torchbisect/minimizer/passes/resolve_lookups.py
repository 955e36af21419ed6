"""Replace a lookup in a registry, or in ``named_modules``, by the function or module that it finds.

Before and after::

    HOOKS = {}                        def shift(x):
    @register("shift")                    return x + 1
    def shift(x):                     model.body[0].hook(shift)
        return x + 1
    dict(model.named_modules())["body.0"].hook(HOOKS["shift"])

Names in strings tie a container, its keys and its users together, and no deletion removes one of them alone.
``paths`` replaces lookups of the parts of a module by attributes. ``first_parts`` does so with the first item of a list
of parts, which a loop over one part leaves behind; each attribute of the script's classes is tried. ``registered``
replaces lookups in containers of the script by functions and classes that a decorator may have registered, and removes
the decorator. The text does not tell which of them a lookup finds, so each is tried, the one with the same key first.

Containers that hold what the script does not define stay.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit
from torchbisect.minimizer.syntax.torch_names import TorchNames
from torchbisect.minimizer.syntax.tree import Function, walk
from torchbisect.minimizer.unused import attempt_and_clean

MOST_REGISTERED = 8
"""The most registered definitions that are tried for one lookup: a script may register dozens."""
_LISTINGS = frozenset({"named_modules", "named_children", "named_parameters", "named_buffers"})
"""Methods of a module that return its parts with their dotted paths."""
_UNNAMED_LISTINGS = frozenset(name.removeprefix("named_") for name in _LISTINGS)
"""Those that return the parts alone."""
MOST_PARTS = 8
"""The most attributes that are tried for one item of a list of parts."""


def paths(search: ReductionSearch) -> None:
    """Replace many lookups by path in one question, then fewer."""
    search.scan_in_batches(_path_edits)


def first_parts(search: ReductionSearch) -> None:
    """Replace the first item of a list of a module's parts by one of its attributes, with what becomes unused."""
    while attempt_and_clean(search, list(_item_edits(search.tree))) is not None:
        pass


def registered(search: ReductionSearch) -> None:
    """Replace one lookup in a registry after the other, with what becomes unused."""
    while attempt_and_clean(search, list(_registry_edits(search.tree))[:MOST_REGISTERED]) is not None:
        pass


def _path_edits(tree: ast.Module) -> Iterator[Edit]:
    """Return the edits from ``dict(model.named_modules())["body.0"]`` to ``model.body[0]``."""
    for node in walk(tree):
        path = node.slice if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) else None
        owner = _listed_module(node.value) if isinstance(node, ast.Subscript) else None
        if owner is not None and isinstance(path, ast.Constant) and isinstance(path.value, str) and path.value:
            yield Edit.of(node, _part(owner, path.value))


def _listed_module(node: ast.expr) -> ast.expr | None:
    """Return ``model`` for ``dict(model.named_modules())`` and the like."""
    if not isinstance(node, ast.Call) or ast.unparse(node.func) != "dict" or not node.args:
        return None
    listing = node.args[0]
    if not isinstance(listing, ast.Call) or listing.args or not isinstance(listing.func, ast.Attribute):
        return None
    return listing.func.value if listing.func.attr in _LISTINGS else None


def _item_edits(tree: ast.Module) -> Iterator[Edit]:
    """Return the edits from ``next(iter(model.parameters()))`` to ``model.weight``, for each attribute of a class.

    An item of ``named_parameters()`` becomes the pair ``("weight", model.weight)``.
    """
    for node in walk(tree):
        listing = _listing_of_first(node)
        if listing is None or not isinstance(listing.func, ast.Attribute):
            continue
        for name in _assigned_attributes(tree)[:MOST_PARTS]:
            part: ast.expr = _part(listing.func.value, name)
            if listing.func.attr in _LISTINGS:
                part = ast.Tuple(elts=[ast.Constant(name), part], ctx=ast.Load())
            yield Edit.of(node, part)


def _listing_of_first(node: ast.AST) -> ast.Call | None:
    """Return ``model.parameters()`` of ``next(model.parameters())``, also where ``iter`` stands between."""
    if not isinstance(node, ast.Call) or ast.unparse(node.func) != "next" or len(node.args) != 1:
        return None
    inner = node.args[0]
    if isinstance(inner, ast.Call) and ast.unparse(inner.func) == "iter" and len(inner.args) == 1:
        inner = inner.args[0]
    if not isinstance(inner, ast.Call) or inner.args or not isinstance(inner.func, ast.Attribute):
        return None
    return inner if inner.func.attr in _LISTINGS | _UNNAMED_LISTINGS else None


def _assigned_attributes(tree: ast.Module) -> list[str]:
    """Return the names ``name`` of all assignments to ``self.name``, in their order."""
    found = (
        node.attr
        for node in walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    )
    return list(dict.fromkeys(found))


def _part(module: ast.expr, path: str) -> ast.expr:
    """Return the expression of a module's part: ``model.body[0]`` for ``body.0``."""
    for name in path.split("."):
        if name.isdigit():
            module = ast.Subscript(value=module, slice=ast.Constant(int(name)), ctx=ast.Load())
        else:
            module = ast.Attribute(value=module, attr=name, ctx=ast.Load())
    return module


def _registry_edits(tree: ast.Module) -> Iterator[Edit]:
    """Return edits from each lookup in a container of the script to each definition that is decorated."""
    containers = {
        target.id
        for node in tree.body
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    torch_names = TorchNames.of(tree)
    definitions = [node for node in tree.body if isinstance(node, (*Function, ast.ClassDef))]
    candidates = [node for node in definitions if _registering(node, torch_names)]
    for lookup in walk(tree):
        if _looks_up(lookup, containers):
            keys = [item.value for item in walk(lookup) if isinstance(item, ast.Constant)]
            for node in sorted(candidates, key=lambda node: not _has_key(node, keys)):
                bare = ((item, None) for item in _registering(node, torch_names))
                yield Edit(((lookup, ast.Name(id=node.name, ctx=ast.Load())), *bare))


def _registering(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, torch_names: TorchNames
) -> list[ast.expr]:
    """Return the decorators that may register a definition: all but those that compile it."""
    return [item for item in node.decorator_list if not torch_names.mentions_compile(item)]


def _has_key(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, keys: Sequence[object]) -> bool:
    """Tell whether one of the keys is the definition's name, or is given to one of its decorators."""
    written = [item.value for part in node.decorator_list for item in walk(part) if isinstance(item, ast.Constant)]
    return any(key in (*written, node.name) for key in keys)


def _looks_up(node: ast.AST, containers: set[str]) -> bool:
    """Tell whether an expression looks something up in one of these containers."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
        place: ast.expr = node.func.value
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        place = node.value
    else:
        return False
    return isinstance(place, ast.Name) and place.id in containers
