"""Delete fields of classes together with what each call gives for them.

Before and after::

    @dataclass                                @dataclass
    class Batch:                              class Batch:
        x: Tensor                                 x: Tensor
        name: str
    keep(Batch(torch.ones(1), "train").x)     keep(Batch(torch.ones(1)).x)

No deletion in one place can do this, as a class takes as many arguments as it has fields. A field that an ``__init__``
sets may be read where objects are made of others: it is only carried along.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.calls import argument_for, calls_of_name
from torchbisect.minimizer.syntax.edits import Edit
from torchbisect.minimizer.syntax.names import called_name
from torchbisect.minimizer.syntax.scope import without_parameter
from torchbisect.minimizer.syntax.tree import walk


def run(search: ReductionSearch) -> None:
    """Delete the fields that no attribute reads but to make other objects, from the last one of each class back."""
    search.scan(_field_edits)
    search.scan(_carried_fields)


def _field_edits(tree: ast.Module) -> Iterator[Edit]:
    read = {node.attr for node in walk(tree) if isinstance(node, ast.Attribute)}
    for fields, calls in _records(tree):
        for number, (name, node) in reversed(list(enumerate(fields))):
            if name not in read:
                given = [argument_for(call, number, name) for call in calls]
                yield Edit(((node, None), *((item, None) for item in given if item is not None)))


def _records(tree: ast.Module) -> Iterator[tuple[list[tuple[str, ast.AST]], list[ast.Call]]]:
    """Yield the fields of each class that is little more than its fields, with their names, and its calls."""
    for node in walk(tree):
        if isinstance(node, ast.ClassDef):
            fields = [item for item in node.body if isinstance(item, ast.AnnAssign)]
            yield [(ast.unparse(item.target), item) for item in fields], calls_of_name(tree, node.name)
        elif isinstance(node, ast.Call) and called_name(node.func) == "namedtuple" and len(node.args) == 2:
            names = node.args[1].elts if isinstance(node.args[1], (ast.List, ast.Tuple)) else []
            yield [(str(item.value), item) for item in names if isinstance(item, ast.Constant)], _calls(tree, node)


def _calls(tree: ast.Module, made: ast.Call) -> list[ast.Call]:
    """Return the calls of a class that a call makes, where it is made and by the names that it is bound to."""
    found = [node for node in walk(tree) if isinstance(node, ast.Call) and node.func is made]
    for node in walk(tree):
        if isinstance(node, ast.Assign) and node.value is made and isinstance(node.targets[0], ast.Name):
            found += calls_of_name(tree, node.targets[0].id)
    return found


def _carried_fields(tree: ast.Module) -> Iterator[Edit]:
    """Yield the edit for each parameter of an ``__init__`` that sets an attribute, with that and all its arguments."""
    for init, calls in _initializers(tree):
        for number in reversed(range(1, len(init.args.args))):
            name = init.args.args[number].arg
            reads = [node for node in walk(init) if isinstance(node, ast.Name) and node.id == name]
            stored = [node for node in init.body if isinstance(node, ast.Assign) and node.value in reads]
            if len(reads) != 1 or not stored or not isinstance(stored[0].targets[0], ast.Attribute):
                continue
            given = [item for call in calls if (item := argument_for(call, number - 1, name)) is not None]
            inside = {id(part) for item in given for part in walk(item)}
            attribute = stored[0].targets[0].attr
            read = [node for node in walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)]
            if all(id(node) in inside for node in read if node.attr == attribute):
                shorter = without_parameter(init.args, number)
                yield Edit(((init.args, shorter), (stored[0], None), *((item, None) for item in given)))


def _initializers(tree: ast.Module) -> Iterator[tuple[ast.FunctionDef, list[ast.Call]]]:
    """Yield each ``__init__`` with the calls of its class, and of the classes that inherit it."""
    classes = [node for node in walk(tree) if isinstance(node, ast.ClassDef)]
    own = {node.name: item for node in classes for item in node.body if getattr(item, "name", "") == "__init__"}
    for name, init in own.items():
        heirs = [item.name for item in classes if item.name not in own and name in map(ast.unparse, item.bases)]
        if isinstance(init, ast.FunctionDef):
            yield init, [call for each in (name, *heirs) for call in calls_of_name(tree, each)]
