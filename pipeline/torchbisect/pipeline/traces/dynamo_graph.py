"""Write a graph of dynamo as a script: the readable text that torch logs for every backend.

The text is that of ``GraphModule.print_readable`` (torch/fx/graph.py), in the event ``dynamo_output_graph`` of a
``TORCH_TRACE`` log and in the files of that name of tlparse. Types stand in it as ``"f32[2, 3][3, 1]cpu"``: dtype,
shape, strides and device.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Collection, Iterator, Mapping

from torchbisect.core.python_text import parse_expression, parse_python
from torchbisect.pipeline.traces.graph_inputs import (
    GraphInputs,
    NotInTrace,
    TensorInput,
    row_major_strides,
    size_value,
    tensor_expression,
)

_HEAD = re.compile(r"\s*class GraphModule\(torch\.nn\.Module\):")
_TENSOR = re.compile(r"([a-z]+\d\w*)\[(.*?)\](?:\[(.*?)\])?([a-z]*(?::\d+)?)")
_SYMBOL = re.compile(r"Sym\((.+)\)")
_DTYPES = {
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{f"c{bits}": f"complex{bits}" for bits in (32, 64, 128)},
    "bf16": "bfloat16",
    "b8": "bool",
}
#: Names that torch's printer uses bare, with the modules that have them.
_PRINTED = {"device": "torch", "inf": "math", "nan": "math"}
_NAME = "Repro"


def is_dynamo_graph(text: str) -> bool:
    """Return True for the readable text of a graph."""
    return _HEAD.match(text) is not None


def read_dynamo_graph(
    text: str, sizes: Mapping[str, int], grads: Collection[str]
) -> tuple[list[ast.stmt], GraphInputs]:
    """Return the imports and modules of a graph, of which the last is the graph's own, and its inputs.

    Args:
        text: the graph's readable text.
        sizes: the values of the symbols in its shapes.
        grads: the sources of the inputs that require a gradient, such as ``L['x']``.

    Raises:
        SyntaxError: the text is no Python.
        NotInTrace: a size, a module or a name of the graph is nowhere in the text.
    """
    top = parse_python(text).body[0]
    assert isinstance(top, ast.ClassDef)
    modules = list(_separate_modules(top, _NAME))
    squeezed = {_letters(source) for source in grads}
    inputs = _inputs(_forward(modules[-1]), sizes, squeezed)
    for module in modules:
        _Untyped().visit(module)
        ast.fix_missing_locations(module)
    return [*_imports(modules), *modules], inputs


def _letters(source: str) -> str:
    """Return the letters and digits of a source or of the parameter that dynamo names after it."""
    return re.sub(r"[\W_]+", "", source)


def _separate_modules(module: ast.ClassDef, name: str) -> Iterator[ast.ClassDef]:
    """Yield the modules within a module, then itself, each as a class of its own that makes those that it calls."""
    inner = {node.name: f"{name}_{node.name}" for node in module.body if isinstance(node, ast.ClassDef)}
    for node in module.body:
        if isinstance(node, ast.ClassDef):
            yield from _separate_modules(node, inner[node.name])
    forward = _forward(module)
    for read in _attributes(forward):
        if read.value.id == "self" and read.attr not in inner:  # type: ignore[attr-defined]
            raise NotInTrace(ast.unparse(read))
    made = "".join(f"        self.{short} = {full}()\n" for short, full in inner.items())
    source = f"class {name}(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n{made}"
    separate = parse_python(source).body[0]
    assert isinstance(separate, ast.ClassDef)
    separate.body = [*(separate.body if made else []), forward]
    yield separate


def _forward(module: ast.ClassDef) -> ast.FunctionDef:
    return next(node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == "forward")


def _attributes(tree: ast.AST) -> Iterator[ast.Attribute]:
    """Yield the attributes that are read from a plain name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield node


def _inputs(forward: ast.FunctionDef, sizes: Mapping[str, int], grads: Collection[str]) -> GraphInputs:
    statements, words, symbolic, require_grad = [], [], False, False
    for parameter in forward.args.args[1:]:
        stated = parameter.annotation.value if isinstance(parameter.annotation, ast.Constant) else None
        symbol = _SYMBOL.fullmatch(str(stated))
        if symbol is not None:
            value = size_value(parse_expression(symbol[1]), sizes)
            symbolic = symbolic or symbol[1] != str(value)
            words.append(repr(value))
            continue
        needs_grad = _letters(parameter.arg) in grads
        tensor, device = _tensor(parameter.arg, str(stated), sizes, needs_grad)
        require_grad = require_grad or needs_grad
        statements.append(f"{parameter.arg} = {tensor_expression(tensor, device)}")
        words.append(parameter.arg)
    return GraphInputs(tuple(statements), tuple(words), symbolic, require_grad)


def _tensor(name: str, stated: str, sizes: Mapping[str, int], needs_grad: bool) -> tuple[TensorInput, str]:
    """Return a tensor and the keyword of its device from its type as torch prints it."""
    found = _TENSOR.fullmatch(stated)
    if found is None or found[1] not in _DTYPES:
        raise NotInTrace(f"the type of {name}")
    shape = _numbers(found[2], sizes)
    stride = row_major_strides(shape) if found[3] is None else _numbers(found[3], sizes)
    device = "" if found[4] in ("", "cpu") else f", device={found[4]!r}"
    return TensorInput(shape, stride, _DTYPES[found[1]], requires_grad=needs_grad), device


def _numbers(listed: str, sizes: Mapping[str, int]) -> tuple[int, ...]:
    elements = parse_expression(f"[{listed}]")
    return tuple(size_value(item, sizes) for item in getattr(elements, "elts", []))


def _imports(modules: list[ast.ClassDef]) -> list[ast.stmt]:
    """Return the imports of the names that the modules read and don't make."""
    names = [node for module in modules for node in ast.walk(module) if isinstance(node, ast.Name)]
    made = {node.id for node in names if isinstance(node.ctx, ast.Store)} | {module.name for module in modules}
    made |= {node.arg for module in modules for node in ast.walk(module) if isinstance(node, ast.arg)}
    free = {node.id for node in names} - made - set(dir(builtins))
    read_from = {read.value.id for module in modules for read in _attributes(module)}  # type: ignore[attr-defined]
    lines = ["import torch"]
    for name in sorted(free - {"torch"}):
        if name in _PRINTED:
            lines.append(f"from {_PRINTED[name]} import {name}")
        elif name in read_from:
            lines.append(f"import {name}")
        else:
            raise NotInTrace(name)
    return parse_python("\n".join(lines)).body


class _Untyped(ast.NodeTransformer):
    """Remove the types that torch prints, which are text and no Python types."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        """Return the assignment without its type."""
        assert node.value is not None
        return ast.copy_location(ast.Assign([node.target], node.value), node)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        """Remove the type of a parameter."""
        node.annotation = None
        return node
