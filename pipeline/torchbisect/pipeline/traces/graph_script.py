"""Write a graph that the compiler left behind as a script that calls it through ``torch.compile``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from torchbisect.core.python_text import parse_expression, parse_python
from torchbisect.pipeline.traces.dynamo_graph import read_dynamo_graph
from torchbisect.pipeline.traces.find import Graph
from torchbisect.pipeline.traces.graph_inputs import GraphInputs, graph_inputs

# Flags that the compiler itself sets while it compiles, and those of the trace; another torch may not have them.
_OF_THE_COMPILER = re.compile(
    r"torch\._functorch\.config\.(?:functionalize_rng_ops|fake_tensor_allow_unsafe_data_ptr_access|"
    r"unlift_effect_tokens|selective_decompose|debug_partitioner)|torch\._inductor\.config\.(?:trace\.|"
    r"inplace_buffers = True|comprehensive_padding = True|unroll_reductions_threshold = 8|deterministic = False|"
    r"triton\.store_cubin = False)"
)
_OF_TORCH = re.compile(r"(isolate_fails_code_str|load_args\._version|mod) = |torch\._higher_order_ops\.triton_kernel")
_BACKWARD = """\
leaves = torch.utils._pytree.tree_flatten(output)[0]
sum(leaf.sum() for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad).backward()"""


def graph_script(graph: Graph) -> str:
    """Return the script of a graph: its module, inputs of its shapes, and one call.

    Raises:
        SyntaxError: the text of the graph is no Python.
        NotInTrace: nothing states the value of a symbol in a shape, or a part of the graph.
    """
    if graph.is_dynamo:
        statements, inputs = read_dynamo_graph(graph.text, graph.sizes, graph.grads)
        backend, before_autograd = "", True
    else:
        tree = parse_python(graph.text)
        statements, inputs = _kept(tree), _read_inputs(tree, graph)
        # The minifier's graphs of dynamo stand before autograd, those of AOTAutograd behind it.
        before_autograd = any(
            isinstance(node, ast.ImportFrom) and (node.module or "").endswith("after_dynamo") for node in ast.walk(tree)
        )
        backend = _backend(_run_call(tree)) if before_autograd else ""
    title = f'"""{graph.name}: a graph that torch.compile left behind; its inputs are drawn, as it keeps no values."""'
    kept = [ast.unparse(_readable(node)) for node in statements]
    parts = [title, "", *kept, "", "torch.manual_seed(0)", "mod = Repro()", *inputs.statements]
    parts += list(_call(inputs, backend, before_autograd))
    return "\n".join(parts) + "\n"


def _read_inputs(tree: ast.Module, graph: Graph) -> GraphInputs:
    forward = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "forward")
    load = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "load_args")
    return graph_inputs(load, [argument.arg for argument in forward.args.args[1:]], graph.sizes)


def _call(inputs: GraphInputs, backend: str, before_autograd: bool) -> Iterator[str]:
    options = f", backend={backend!r}" if backend else ""
    options += ", dynamic=True" if inputs.symbolic else ""
    yield f"compiled = torch.compile(mod{options})"
    line = f"output = compiled({', '.join(inputs.words)})"
    if not before_autograd:
        yield f"with torch.no_grad():\n    {line}"
        return
    yield line
    if inputs.require_grad:
        yield _BACKWARD


def _run_call(tree: ast.Module) -> ast.Call | None:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "run_repro":
            return node
    return None


def _backend(run: ast.Call | None) -> str:
    """Return the backend of a minifier's script; empty for the default."""
    words = {keyword.arg: keyword.value for keyword in run.keywords} if run is not None else {}
    named = words.get("backend")
    given = named.value if isinstance(named, ast.Constant) else None
    return given if isinstance(given, str) and given != "inductor" else ""


def _kept(tree: ast.Module) -> list[ast.stmt]:
    """Return the statements that the graph needs: its imports, flags, kernels and its module."""
    body = [node for node in tree.body if not _is_driver(node)]
    read = {name.id for node in body for name in ast.walk(node) if isinstance(name, ast.Name)}
    text = "\n".join(ast.unparse(node) for node in body if not isinstance(node, ast.Import | ast.ImportFrom))
    made = {node.name for node in body if isinstance(node, ast.ClassDef)}
    made |= {name.arg for node in body for name in ast.walk(node) if isinstance(name, ast.arg)}
    is_import = (ast.Import, ast.ImportFrom)
    return [node for node in body if not isinstance(node, is_import) or _imports(node, read - made, text)]


def _is_driver(node: ast.stmt) -> bool:
    text = ast.unparse(node)
    if isinstance(node, ast.FunctionDef) and node.name == "load_args":
        return True
    if isinstance(node, ast.If) and ("__name__" in text or "__compile_source__" in text):
        return True
    return text.startswith("os.environ") or bool(_OF_TORCH.match(text) or _OF_THE_COMPILER.match(text))


def _imports(node: ast.Import | ast.ImportFrom, read: set[str], text: str) -> bool:
    """Return True for an import of something that is read."""
    if isinstance(node, ast.ImportFrom):
        if node.names[0].name == "*":  # the modules that a graph holds: Linear(...), say
            return any(name[:1].isupper() for name in read)
        return any((name.asname or name.name) in read for name in node.names)
    if any(name.asname for name in node.names):
        return any((name.asname or "") in read for name in node.names)
    # The module of inductor's own operators registers them.
    names = [name.name for name in node.names]
    return any(
        name == "torch" or f"{name}." in text or (name.endswith("inductor_prims") and "torch.ops." in text)
        for name in names
    )


class _Readable(ast.NodeTransformer):
    """Let a graph draw as the program did, and free nothing.

    Inductor's primitives draw other numbers without compiling than with it.
    """

    def visit_Assign(self, node: ast.Assign) -> Any:
        """Remove what only frees memory: ``addmm = permute = None``."""
        self.generic_visit(node)
        return None if isinstance(node.value, ast.Constant) and node.value.value is None else node

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        name = ast.unparse(node.func)
        words = [ast.unparse(word) for word in node.args]
        if name == "torch.ops.prims.inductor_seeds.default":
            return parse_expression(f"torch.zeros([{words[0]}], dtype=torch.int64, device={words[1]})")
        if name == "torch.ops.prims.inductor_lookup_seed.default":
            return parse_expression(f"{words[0]}[{words[1]}]")
        if name == "torch.ops.prims.inductor_random.default" and words[2] in ("'rand'", "'randn'"):
            return parse_expression(f"torch.{words[2][1:-1]}({words[0]}, device={words[1]}.device)")
        if name == "torch.ops.prims.inductor_randint.default":
            return parse_expression(f"torch.randint({words[0]}, {words[1]}, {words[2]}, device={words[3]}.device)")
        return node


def _readable(node: ast.stmt) -> ast.stmt:
    made: ast.stmt = ast.fix_missing_locations(_Readable().visit(node))
    return made
