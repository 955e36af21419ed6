"""Write the inputs of a graph as statements that make tensors of the same shapes, strides and dtypes.

A trace keeps no values. Floating-point inputs are normal, and integers are 0 or 1: they are often indices.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: No tensor has a larger size.
_LARGEST = 2**63


def _power(base: int, exponent: int) -> int:
    """Return a power that a size may have. Raises ``OverflowError`` for others before it is computed."""
    if not 0 <= exponent < 64:
        raise OverflowError
    return int(base**exponent)


_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}
_FUNCTIONS: dict[str, Callable[..., int]] = {
    "Max": max,
    "Min": min,
    "FloorDiv": operator.floordiv,
    "CleanDiv": operator.floordiv,
    "Mod": operator.mod,
    "PythonMod": operator.mod,
}
_NORMAL = ("float32", "float64", "float16", "bfloat16", "complex64", "complex128")
_WHOLE = ("int64", "int32", "int16", "int8", "uint8", "bool")


class NotInTrace(Exception):
    """What a graph needs and the trace does not state: a symbol's value, a module. Its message is its name."""


@dataclass(frozen=True)
class GraphInputs:
    """The inputs of a graph.

    Attributes:
        statements: the statements that make them.
        words: the arguments of the call.
        symbolic: a size was a symbol when the graph was compiled.
        require_grad: one of them requires a gradient.
    """

    statements: tuple[str, ...]
    words: tuple[str, ...]
    symbolic: bool
    require_grad: bool


@dataclass(frozen=True)
class TensorInput:
    """A tensor of a graph, without its values.

    Attributes:
        shape: its size in each dimension.
        stride: the elements of its memory from one index to the next, for each dimension.
        offset: the element of its memory where it begins.
        dtype: without ``torch.``.
        buffer: the name of its memory, which others may share; empty if nothing shares it.
    """

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str
    offset: int = 0
    requires_grad: bool = False
    buffer: str = ""

    @property
    def elements(self) -> int:
        """The elements that its memory must have."""
        if 0 in self.shape:
            return self.offset
        return self.offset + 1 + sum((size - 1) * step for size, step in zip(self.shape, self.stride))


def graph_inputs(load: ast.FunctionDef, names: Sequence[str], sizes: Mapping[str, int]) -> GraphInputs:
    """Return the inputs that a graph's ``load_args`` reads.

    Args:
        load: that function.
        names: the parameters of the graph.
        sizes: the values of symbols.

    Raises:
        NotInTrace: a shape has a symbol without a value.
    """
    calls: list[Any] = [node for node in ast.walk(load) if _reads(node)]
    calls.sort(key=lambda call: call.lineno)
    known = {**sizes, **_stated_sizes(calls)}
    storages: list[Any] = [node for node in load.body if _is_storage(node)]
    devices = {node.targets[0].id: _device(node.value) for node in storages}
    read = [_argument(call, known) for call in calls if call.func.attr != "storage"]
    shared = [item.buffer for item in read if isinstance(item, TensorInput)]
    statements: list[str] = []
    words: list[str] = []
    for name, item in zip(names, read):
        if not isinstance(item, TensorInput):
            words.append(repr(item))
            continue
        alone = shared.count(item.buffer) == 1
        device = devices.get(item.buffer, "")
        if not alone and not any(line.startswith(f"{item.buffer} = ") for line in statements):
            most = max(one.elements for one in read if isinstance(one, TensorInput) and one.buffer == item.buffer)
            statements.append(f"{item.buffer} = {_drawn((most,), item.dtype, device)}")
        statements.append(f"{name} = {tensor_expression(item, device, alone=alone)}")
        words.append(name)
    symbolic = any(call.func.attr == "symint" for call in calls)
    grads = any(isinstance(item, TensorInput) and item.requires_grad for item in read)
    return GraphInputs(tuple(statements), tuple(words), symbolic, grads)


def _reads(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "reader"
    )


def _is_storage(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and _reads(node.value) and isinstance(node.targets[0], ast.Name)


def _keywords(call: ast.Call) -> dict[str, ast.expr]:
    return {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}


def _stated_sizes(calls: Sequence[Any]) -> dict[str, int]:
    """Return the symbols that arguments state with their values."""
    found = {}
    for call in calls:
        symbol = _keywords(call).get("expr")
        value = call.args[0] if call.func.attr == "symint" else None
        if isinstance(symbol, ast.Constant) and isinstance(value, ast.Constant) and isinstance(value.value, int):
            found[str(symbol.value)] = value.value
    return found


def _device(call: Any) -> str:
    given = _keywords(call).get("device")
    if given is None:
        return ""
    return f", device={ast.unparse(given).replace('device(', 'torch.device(', 1)}"


def _argument(call: Any, sizes: Mapping[str, int]) -> Any:
    """Return an argument: a tensor, a number, or ``None`` for what no graph uses."""
    if call.func.attr == "symint":
        return size_value(call.args[0], sizes)
    if call.func.attr != "tensor":
        return None
    words = _keywords(call)
    shape = _numbers(call.args[1], sizes)
    stride = _numbers(call.args[2], sizes) if len(call.args) > 2 else row_major_strides(shape)
    offset = size_value(words["storage_offset"], sizes) if "storage_offset" in words else 0
    dtype = ast.unparse(words["dtype"]).removeprefix("torch.") if "dtype" in words else "float32"
    requires_grad = "requires_grad" in words and ast.unparse(words["requires_grad"]) == "True"
    return TensorInput(shape, stride, dtype, offset, requires_grad, call.args[0].id)


def _numbers(node: ast.expr, sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(size_value(item, sizes) for item in getattr(node, "elts", [node]))


def size_value(node: ast.expr, sizes: Mapping[str, int]) -> int:
    """Return the value of a size, which may be an expression of symbols. Raises ``NotInTrace``."""
    try:
        value = _evaluated(node, sizes)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise NotInTrace(ast.unparse(node)) from error
    if abs(value) > _LARGEST:
        raise NotInTrace(ast.unparse(node))
    return value


def _evaluated(node: ast.expr, sizes: Mapping[str, int]) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value  # type: ignore[return-value]
    if isinstance(node, ast.Name) and node.id in sizes:
        return sizes[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return int(_OPERATORS[type(node.op)](size_value(node.left, sizes), size_value(node.right, sizes)))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -size_value(node.operand, sizes)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
        return _FUNCTIONS[node.func.id](*(size_value(item, sizes) for item in node.args))
    raise NotInTrace(ast.unparse(node))


def row_major_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a contiguous tensor."""
    steps: list[int] = []
    step = 1
    for size in reversed(shape):
        steps.insert(0, step)
        step *= max(size, 1)
    return tuple(steps)


def tensor_expression(item: TensorInput, device: str = "", *, alone: bool = True) -> str:
    """Return the expression of a tensor: a drawn one, or a view of its buffer where the layout is not the plain one.

    Args:
        item: the tensor.
        device: the keyword of its constructor, with a comma before it; empty for the CPU.
        alone: no other tensor shares its memory.
    """
    plain = item.stride == row_major_strides(item.shape) and item.offset == 0
    if alone and plain:
        text = _drawn(item.shape, item.dtype, device)
    else:
        source = _drawn((item.elements,), item.dtype, device) if alone else item.buffer
        where = f", {item.offset}" if item.offset else ""
        text = f"torch.as_strided({source}, {item.shape}, {item.stride}{where})"
    return text + (".requires_grad_()" if item.requires_grad else "")


def _drawn(shape: tuple[int, ...], dtype: str, device: str) -> str:
    kind = "" if dtype == "float32" else f", dtype=torch.{dtype}"
    if dtype in _NORMAL:
        return f"torch.randn({', '.join(map(str, shape)) or '()'}{kind}{device})"
    if dtype in _WHOLE:
        return f"torch.randint(0, 2, {shape}{kind if dtype != 'int64' else ''}{device})"
    return f"torch.zeros({shape}{kind}{device})"
