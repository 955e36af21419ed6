"""Delete fields of dataclasses and named tuples together with what each call gives for them.

Before and after::

    @dataclass                                @dataclass
    class Batch:                              class Batch:
        x: Tensor                                 x: Tensor
        name: str
    keep(Batch(torch.ones(1), "train").x)     keep(Batch(torch.ones(1)).x)

No deletion in one place can do this, as a class takes as many arguments as it has fields.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchbisect.minimizer.passes.delete_parameters import argument_for, calls_of_name
from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit
from torchbisect.minimizer.syntax.names import called_name
from torchbisect.minimizer.syntax.tree import walk


def run(search: ReductionSearch) -> None:
    """Delete the fields that no attribute reads, from the last one of each class back."""
    search.scan(_field_edits)


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
