"""The neighbors of a shrunk script: the properties that can be changed in it, and how each change is written.

A property may or may not matter for the mismatch: the dtype of a tensor that the script makes, its size, whether its
memory is contiguous, whether it requires a gradient, whether gradients are recorded at all, a number in the code.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import shorten

from torchbisect.core.python_text import parse_expression, parse_python
from torchbisect.minimizer.syntax.torch_names import TENSOR_CONSTRUCTORS, TorchNames
from torchbisect.minimizer.syntax.tree import walk

FLOAT_DTYPES = ("float64", "float32", "bfloat16", "float16")
OTHER_DTYPES = ("complex64", "int64", "int32", "bool")
SIZES = (1, 2, 3, 4, 7, 16)

Change = Callable[[Sequence[ast.AST]], None]
"""A change of a script in place. It receives all nodes of the unchanged tree, so no change moves another's node."""


@dataclass(frozen=True)
class Property:
    """A property of the script that can be changed; ``variants`` maps each other value to the change that writes it.

    The kind is ``dtype``, ``requires_grad``, ``contiguity``, ``size``, ``grad mode``, ``dynamic`` or ``constant``.
    """

    description: str
    kind: str
    current: str
    variants: Mapping[str, Change]


def properties(source: str) -> tuple[Property, ...]:
    """Return the properties that can be changed in a script, in the order of its tree."""
    tree = parse_python(source)
    torch_names = TorchNames.of(tree)
    found: list[Property] = []
    seen: Counter[str] = Counter()
    for position, node in enumerate(walk(tree)):
        if not isinstance(node, ast.Call):
            continue
        name = torch_names.constructor(node.func)
        if name is not None and name != "randint":
            text = shorten(ast.unparse(node), 60, placeholder=" …")
            seen[text] += 1
            description = text + (f" (number {seen[text]})" if seen[text] > 1 else "")
            found += _tensor_properties(position, node, name, description)
        elif torch_names.names_compile(node.func):
            found.append(_compile_property(position, node))
    found += _constant_properties(tree)
    if "backward" not in source and "grad(" not in source:
        found.append(Property("grad mode", "grad mode", "on", {"off": _disable_gradients}))
    return tuple(found)


def changed(source: str, changes: Iterable[Change]) -> str:
    """Return the script with changes made; those of one tensor must come in the order of its properties."""
    tree = parse_python(source)
    nodes = list(walk(tree))
    for change in changes:
        change(nodes)
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _tensor_properties(position: int, node: ast.Call, name: str, description: str) -> Iterator[Property]:
    """Yield the properties of a tensor that the script makes; ``position`` is that of its node in a walk."""
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    if None in given or any(isinstance(argument, ast.Starred) for argument in node.args):
        return
    constructor = TENSOR_CONSTRUCTORS[name]
    dtype = ast.unparse(given["dtype"]).removeprefix("torch.") if "dtype" in given else "the default"
    others = [one for one in (*FLOAT_DTYPES, *(() if constructor.float_only else OTHER_DTYPES)) if one != dtype]
    if dtype == "the default":
        others = [one for one in others if one != "float32"]
    dtypes = {one: _set_keyword(position, "dtype", f"torch.{one}") for one in others}
    yield Property(f"the dtype of {description}", "dtype", dtype, dtypes)
    if "requires_grad" in given and ast.unparse(given["requires_grad"]) == "True":
        without = {"False": _set_keyword(position, "requires_grad", "False")}
        yield Property(f"requires_grad of {description}", "requires_grad", "True", without)
    if constructor.takes_sizes:
        for number, argument in enumerate(node.args):
            if isinstance(argument, ast.Constant) and type(argument.value) is int:
                sizes = {str(size): _set_argument(position, number, size) for size in SIZES if size != argument.value}
                yield Property(f"size {number} of {description}", "size", str(argument.value), sizes)
    # This property comes last: its change wraps a call around the tensor, and the others change the tensor itself.
    yield Property(f"the memory of {description}", "contiguity", "contiguous", {"strided": _make_strided(position)})


def _constant_properties(tree: ast.Module) -> Iterator[Property]:
    """Yield a property for each number inside a function, which is part of the code and not of its inputs."""
    inside: dict[int, str] = {}
    for function in walk(tree):
        if isinstance(function, ast.Lambda):
            inside |= {id(one): ast.unparse(function) for one in walk(function)}
        elif isinstance(function, ast.FunctionDef):
            # Outer statements come first, so that the innermost statement overwrites them.
            for statement in walk(ast.Module(function.body, [])):
                if isinstance(statement, ast.stmt):
                    inside |= {id(one): ast.unparse(statement) for one in walk(statement)}
    for position, node in enumerate(walk(tree)):
        if id(node) in inside and isinstance(node, ast.Constant) and type(node.value) in (int, float):
            value = node.value
            assert isinstance(value, (int, float))
            others = dict.fromkeys(one for one in (0, 1, 2, value + 1, -value) if one != value)
            statement_text = shorten(inside[id(node)].splitlines()[0], 60, placeholder=" …")
            variants = {repr(one): _set_constant(position, one) for one in others}
            yield Property(f"the number {value!r} in {statement_text}", "constant", repr(value), variants)


def _compile_property(position: int, node: ast.Call) -> Property:
    given = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
    current = given.get("dynamic", "left to torch")
    others = {one: _set_keyword(position, "dynamic", one) for one in ("True", "False") if one != current}
    return Property("dynamic of torch.compile", "dynamic", current, others)


def _set_keyword(position: int, name: str, text: str) -> Change:
    def change(nodes: Sequence[ast.AST]) -> None:
        node = nodes[position]
        assert isinstance(node, ast.Call)
        value = parse_expression(text)
        kept = [keyword for keyword in node.keywords if keyword.arg != name]
        node.keywords = [*kept, ast.keyword(name, value)]

    return change


def _set_argument(position: int, number: int, value: int) -> Change:
    def change(nodes: Sequence[ast.AST]) -> None:
        node = nodes[position]
        assert isinstance(node, ast.Call)
        node.args[number] = ast.Constant(value)

    return change


def _set_constant(position: int, value: float) -> Change:
    def change(nodes: Sequence[ast.AST]) -> None:
        node = nodes[position]
        assert isinstance(node, ast.Constant)
        node.value = value

    return change


def _make_strided(position: int) -> Change:
    """Return a change that puts the same values into every second element of a larger memory."""

    def change(nodes: Sequence[ast.AST]) -> None:
        node = nodes[position]
        assert isinstance(node, ast.Call)
        inner = ast.Call(node.func, node.args, node.keywords)
        made = parse_expression("torch.stack([0, 0], -1).select(-1, 0)")
        assert isinstance(made, ast.Call)
        assert isinstance(made.func, ast.Attribute)
        assert isinstance(made.func.value, ast.Call)
        made.func.value.args[0] = ast.List([inner, inner], ast.Load())
        node.func, node.args, node.keywords = made.func, made.args, []

    return change


def _disable_gradients(nodes: Sequence[ast.AST]) -> None:
    """Disable gradients in the line after the imports."""
    tree = nodes[0]
    assert isinstance(tree, ast.Module)
    last = max((n for n, one in enumerate(tree.body) if isinstance(one, (ast.Import, ast.ImportFrom))), default=-1)
    tree.body[last + 1 : last + 1] = parse_python("torch.set_grad_enabled(False)").body
