"""The neighbours of a shrunk script: what can be varied in it, and how each is written.

A dimension is one thing that may or may not matter: the dtype of a tensor that the script makes, its size, whether its
memory is contiguous, whether it requires a gradient, whether gradients are recorded at all, a number in the code.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import shorten

from torchbisect.minimizer.syntax.tree import walk

FLOATS = ("float64", "float32", "bfloat16", "float16")
OTHERS = ("complex64", "int64", "int32", "bool")
SIZES = (1, 2, 3, 4, 7, 16)

_MAKERS = frozenset({"ones", "zeros", "rand", "randn", "empty", "full", "tensor", "arange", "eye", "linspace"})
_SIZED = frozenset({"ones", "zeros", "rand", "randn", "empty"})
_FLOAT_ONLY = frozenset({"rand", "randn"})

Change = Callable[[Sequence[ast.AST]], None]
"""Changes a script in place; given all nodes of its tree as it was, so that one change does not move another's."""


@dataclass(frozen=True)
class Dimension:
    """One thing that can be varied.

    Attributes:
        what: it, in words: ``the dtype of torch.ones(3)``.
        kind: ``dtype``, ``requires_grad``, ``contiguity``, ``size``, ``grad mode``, ``dynamic`` or ``constant``.
        now: how it is in the script, in words.
        variants: other ways, in words, each with what writes it.
    """

    what: str
    kind: str
    now: str
    variants: Mapping[str, Change]


def dimensions(source: str) -> tuple[Dimension, ...]:
    """What can be varied in a script, in the order of its text."""
    tree = ast.parse(source)
    found: list[Dimension] = []
    seen: Counter[str] = Counter()
    for place, node in enumerate(walk(tree)):
        if isinstance(node, ast.Call) and _maker(node):
            text = shorten(ast.unparse(node), 60, placeholder=" …")
            seen[text] += 1
            found += _of_tensor(place, node, text + (f" (number {seen[text]})" if seen[text] > 1 else ""))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "torch.compile":
            found.append(_of_compile(place, node))
    found += _of_constants(tree)
    if "backward" not in source and "grad(" not in source:
        found.append(Dimension("grad mode", "grad mode", "on", {"off": _without_gradients}))
    return tuple(found)


def changed(source: str, changes: Iterable[Change]) -> str:
    """The script with changes made; those of one tensor in the order in which its dimensions came."""
    tree = ast.parse(source)
    nodes = list(walk(tree))
    for change in changes:
        change(nodes)
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _maker(node: ast.Call) -> str | None:
    function = node.func
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "torch":
        return function.attr if function.attr in _MAKERS else None
    return None


def _of_tensor(place: int, node: ast.Call, words: str) -> Iterator[Dimension]:
    """The dimensions of a tensor that the script makes; the node is found again by its place in a walk."""
    name = _maker(node) or ""
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    if None in given or any(isinstance(argument, ast.Starred) for argument in node.args):
        return
    dtype = ast.unparse(given["dtype"]).removeprefix("torch.") if "dtype" in given else "the default"
    others = [one for one in (*FLOATS, *(() if name in _FLOAT_ONLY else OTHERS)) if one != dtype]
    if dtype == "the default":
        others = [one for one in others if one != "float32"]
    yield Dimension(
        f"the dtype of {words}", "dtype", dtype, {one: _keyword(place, "dtype", f"torch.{one}") for one in others}
    )
    if "requires_grad" in given and ast.unparse(given["requires_grad"]) == "True":
        yield Dimension(
            f"requires_grad of {words}", "requires_grad", "True", {"False": _keyword(place, "requires_grad", "False")}
        )
    if name in _SIZED:
        for position, argument in enumerate(node.args):
            if isinstance(argument, ast.Constant) and type(argument.value) is int:
                other = {str(size): _argument(place, position, size) for size in SIZES if size != argument.value}
                yield Dimension(f"size {position} of {words}", "size", str(argument.value), other)
    # The last of them: it puts a call around the tensor, and the others change that tensor.
    yield Dimension(f"the memory of {words}", "contiguity", "contiguous", {"strided": _strided(place)})


def _of_constants(tree: ast.Module) -> Iterator[Dimension]:
    """Numbers inside of functions, which are the code and not its inputs."""
    inside: dict[int, str] = {}
    for function in walk(tree):
        if isinstance(function, ast.Lambda):
            inside |= {id(one): ast.unparse(function) for one in walk(function)}
        elif isinstance(function, ast.FunctionDef):
            # From the outside in, so that the innermost statement has the last word.
            for statement in walk(ast.Module(function.body, [])):
                if isinstance(statement, ast.stmt):
                    inside |= {id(one): ast.unparse(statement) for one in walk(statement)}
    for place, node in enumerate(walk(tree)):
        if id(node) in inside and isinstance(node, ast.Constant) and type(node.value) in (int, float):
            value = node.value
            assert isinstance(value, (int, float))
            others = dict.fromkeys(one for one in (0, 1, 2, value + 1, -value) if one != value)
            yield Dimension(
                f"the number {value!r} in {shorten(inside[id(node)].splitlines()[0], 60, placeholder=' …')}",
                "constant",
                repr(value),
                {repr(one): _constant(place, one) for one in others},
            )


def _of_compile(place: int, node: ast.Call) -> Dimension:
    given = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
    now = given.get("dynamic", "left to torch")
    others = {one: _keyword(place, "dynamic", one) for one in ("True", "False") if one != now}
    return Dimension("dynamic of torch.compile", "dynamic", now, others)


def _keyword(place: int, name: str, text: str) -> Change:
    def change(nodes: Sequence[ast.AST]) -> None:
        node = nodes[place]
        assert isinstance(node, ast.Call)
        value = ast.parse(text, mode="eval").body
        kept = [keyword for keyword in node.keywords if keyword.arg != name]
        node.keywords = [*kept, ast.keyword(name, value)]

    return change


def _argument(place: int, position: int, value: int) -> Change:
    def change(nodes: Sequence[ast.AST]) -> None:
        node = nodes[place]
        assert isinstance(node, ast.Call)
        node.args[position] = ast.Constant(value)

    return change


def _constant(place: int, value: float) -> Change:
    def change(nodes: Sequence[ast.AST]) -> None:
        node = nodes[place]
        assert isinstance(node, ast.Constant)
        node.value = value

    return change


def _strided(place: int) -> Change:
    """The same values in every second element of memory."""

    def change(nodes: Sequence[ast.AST]) -> None:
        node = nodes[place]
        assert isinstance(node, ast.Call)
        inner = ast.Call(node.func, node.args, node.keywords)
        made = ast.parse("torch.stack([0, 0], -1).select(-1, 0)", mode="eval").body
        assert isinstance(made, ast.Call)
        assert isinstance(made.func, ast.Attribute)
        assert isinstance(made.func.value, ast.Call)
        made.func.value.args[0] = ast.List([inner, inner], ast.Load())
        node.func, node.args, node.keywords = made.func, made.args, []

    return change


def _without_gradients(nodes: Sequence[ast.AST]) -> None:
    """Gradients are switched off behind the imports."""
    tree = nodes[0]
    assert isinstance(tree, ast.Module)
    behind = max((n for n, one in enumerate(tree.body) if isinstance(one, (ast.Import, ast.ImportFrom))), default=-1)
    tree.body[behind + 1 : behind + 1] = ast.parse("torch.set_grad_enabled(False)").body
