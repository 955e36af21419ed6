"""Assertions that compare one value of the script with the value that the eager run had."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from torchbisect.core.python_text import parse_python
from torchbisect.core.verdict import MismatchKind
from torchbisect.minimizer.standalone.held_values import argument_values, closure_values, object_values
from torchbisect.minimizer.syntax.tree import expression, walk

FLAGS = ("requires_grad", "is_leaf", "dtype", "shape", "stride", "device", "layout", "is_contiguous")
"""Attributes of a tensor that a mismatch may name."""
_METHODS = frozenset({"stride", "is_contiguous"})


class ObservedMismatch(Protocol):
    """A mismatch as the probe reports it."""

    @property
    def kind(self) -> MismatchKind:
        """The kind of mismatch."""

    @property
    def place(self) -> str:
        """The place of the differing value: ``call 0 output[1]``, ``global loss``."""

    @property
    def attribute(self) -> str:
        """The attribute that differs there."""

    @property
    def eager(self) -> str:
        """The value of the eager run, in a few words."""

    @property
    def compiled(self) -> str:
        """The value of the compiled run, in a few words."""

    @property
    def detail(self) -> Mapping[str, Any]:
        """More about the values; of tensors the ``index`` of the element that differs, and ``numel``."""


def read_flag(text: str, flag: str) -> str:
    """Return the code that reads one of the ``FLAGS`` of an expression."""
    return f"{text}.{flag}()" if flag in _METHODS else f"{text}.{flag}"


_STRUCTURE = {
    "length": ("len({})",),
    "keys": ("list({})", "sorted({})", "sorted(vars({}))"),
    "order of keys": ("list({})",),
    "type": (),
}
"""Code that reads the structure of a container, by the word with which the comparison names it."""
_PATH = re.compile(r"(?:output|return value|gradient)(.*)$")
_PARAMETER = re.compile(r"\w((?:\.\w+|\[\d+\])+)\.grad$")
#: Numbers are shown with six digits, so one of more characters than these, a point among them, may be rounded.
_EXACT_CHARACTERS = 5
_SAFE_PATH = re.compile(r"(?:\[(?:-?\d+|'[^']*'|\"[^\"]*\")\]|\.\w+)*\Z")


def with_value_assertions(tree: ast.Module, mismatch: ObservedMismatch) -> Iterator[ast.Module]:
    """Yield the script followed by an assertion, for each expression of the differing value and each form."""
    for subject, changed in _differing_values(tree, mismatch):
        for check in _checks(subject, mismatch):
            yield ast.Module(body=[*changed.body, check], type_ignores=[])


def _differing_values(tree: ast.Module, mismatch: ObservedMismatch) -> Iterator[tuple[ast.expr, ast.Module]]:
    """Yield expressions for the value that differs, each with the script in which it can be written."""
    place = mismatch.place
    name = re.search(r"global ([A-Za-z_]\w*)(.*)$", place)
    if name and _SAFE_PATH.match(name.group(2).strip()):
        yield expression(name.group(1) + name.group(2).strip()), tree
    yield from closure_values(tree, place)
    yield from argument_values(tree, place)
    yield from object_values(tree, place)
    yield from ((gradient, tree) for gradient in gradients(tree, place))
    path = _PATH.search(place)
    tail = path.group(1).strip() if path and _SAFE_PATH.match(path.group(1).strip()) else ""
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        changed = ast.Module(body=tree.body[:-1], type_ignores=[])
        yield expression(f"({ast.unparse(last.value)}){tail}"), changed
    if isinstance(last, ast.Assign) and isinstance(last.targets[0], ast.Name):
        yield expression(last.targets[0].id + tail), tree
        if len(last.targets) == 1:
            changed = ast.Module(body=tree.body[:-1], type_ignores=[])
            yield expression(f"({ast.unparse(last.value)}){tail}"), changed
    for variable in _assigned_names(tree):
        yield expression(variable), tree


def gradients(tree: ast.Module, place: str) -> Iterator[ast.expr]:
    """Yield results of ``torch.autograd.grad`` and ``grad`` of leaves and parameters, if ``place`` is a gradient."""
    if "gradient" not in place and "backward" not in place:
        return
    for node in tree.body:
        if isinstance(node, ast.Assign) and "autograd.grad" in ast.unparse(node.value):
            for item in walk(node.targets[0]):
                if isinstance(item, ast.Name):
                    yield expression(item.id)
    for node in tree.body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and "requires_grad" in ast.unparse(node)
        ):
            yield expression(f"{node.targets[0].id}.grad")
    parameter = _PARAMETER.search(place)
    if parameter:
        path = re.sub(r"\.(\d+)", r"[\1]", parameter.group(1))
        for name in _assigned_names(tree):
            yield expression(f"{name}{path}.grad")


def _assigned_names(tree: ast.Module) -> list[str]:
    """Return the names that statements at module level assign, the last first."""
    found: list[str] = []
    for node in reversed(tree.body):
        if isinstance(node, ast.Assign):
            found += [item.id for target in node.targets for item in walk(target) if isinstance(item, ast.Name)]
    return list(dict.fromkeys(found))


def _checks(subject: ast.expr, mismatch: ObservedMismatch) -> Iterator[ast.stmt]:
    """Yield assertions about an expression that hold in the eager run."""
    text, attribute, eager = ast.unparse(subject), mismatch.attribute, mismatch.eager.strip()
    flag = next((name for name in FLAGS if name == attribute.split("(")[0].strip()), None)
    structure = _STRUCTURE.get(attribute)
    if flag is not None:
        yield from _equals_eager(read_flag(text, flag), eager)
    elif "is None" in attribute or eager == "None" or mismatch.compiled.strip() == "None":
        yield statement(f"assert {text} is None" if eager == "None" else f"assert {text} is not None")
    elif structure is not None:
        if _is_comparable(eager):
            yield from (statement(f"assert {way.format(text)} == {eager}") for way in structure)
        elif eager.isidentifier():
            yield statement(f"assert type({text}).__name__ == {eager!r}")
    else:
        subject = _differing_element(subject, mismatch)
        yield from _is_close_to_eager(subject, mismatch)
        yield from _equals_eager(ast.unparse(subject), eager)


def _differing_element(subject: ast.expr, mismatch: ObservedMismatch) -> ast.expr:
    """Return the element of a tensor that differs; the tensor itself if it has no other."""
    index = mismatch.detail.get("index")
    if not index or mismatch.detail.get("numel") == 1:
        return subject
    return ast.Subscript(subject, expression(", ".join(map(str, index))), ast.Load())


def _is_close_to_eager(subject: ast.expr, mismatch: ObservedMismatch) -> Iterator[ast.stmt]:
    """Yield an assertion with a tolerance about a number that is too long to be written in full."""
    try:
        eager, compiled = float(mismatch.eager), float(mismatch.compiled)
    except ValueError:
        return
    apart = abs(eager - compiled)
    if len(mismatch.eager.strip("-0.")) <= _EXACT_CHARACTERS or not abs(eager) * 1e-4 < apart < math.inf:
        return
    tolerance = 10.0 ** (math.floor(math.log10(apart)) - 1)
    difference = ast.BinOp(subject, ast.Sub(), expression(mismatch.eager.strip()))
    yield statement(f"assert abs({ast.unparse(difference)}) < {tolerance:g}")


def _equals_eager(text: str, eager: str) -> Iterator[ast.stmt]:
    if eager in ("True", "False"):
        yield statement(f"assert {text}" if eager == "True" else f"assert not {text}")
    elif eager == "nan":
        yield statement(f"assert {text}.isnan()")
    elif eager.strip("-") == "inf":
        yield statement(f"assert {text} == float({eager!r})")
    elif _is_comparable(eager):
        yield statement(f"assert {text} == {eager}")


def _is_comparable(text: str) -> bool:
    """Tell whether the words for a value are also an expression for it."""
    if re.fullmatch(r"torch\.\w+", text):
        return True
    if text.startswith("torch.Size("):
        return bool(re.fullmatch(r"torch\.Size\(\[[\d, ]*\]\)", text))
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def statement(text: str) -> ast.stmt:
    """Return the tree of one statement."""
    return parse_python(text).body[0]
