"""Render a shrunk script as a test in the form of PyTorch's own suite."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torchbisect.core.python_text import parse_python

#: The file of PyTorch's suite for a component, and the label of its owners.
_PLACES = {
    "dynamo": ("test/dynamo/test_repros.py", "module: dynamo"),
    "pt2-dispatcher": ("test/functorch/test_aotdispatch.py", "oncall: pt2"),
    "decompositions": ("test/test_decomp.py", "module: decompositions"),
    "inductor": ("test/inductor/test_torchinductor.py", "module: inductor"),
    "compiled autograd": ("test/inductor/test_compiled_autograd.py", "module: compiled autograd"),
    "dynamic shapes": ("test/test_dynamic_shapes.py", "module: dynamic shapes"),
}
_LADDER = ("eager", "aot_eager", "inductor")
_COMPARED = "torch.testing.assert_close"
_OPTIONS = {"rtol", "atol", "equal_nan"}


@dataclass(frozen=True)
class PytorchTest:
    """A test that may show a bug.

    Attributes:
        text: the text of its file.
        tests: the number of tests in it, all of which should fail.
    """

    text: str
    tests: int


def test_place(component: str | None) -> str:
    """Return the file of PyTorch's suite to which a test of a component belongs."""
    return _PLACES.get(component or "", _PLACES["dynamo"])[0]


def pytorch_tests(source: str, *, name: str, summary: str, component: str | None) -> Iterator[PytorchTest]:
    """Yield the forms that a script's test may take, the best first: only a run tells which of them shows the bug.

    The script is the body of one test, for all backends from its own on where it names one; else its definitions stand
    outside of the test, as global names.

    Args:
        name: the end of the test's name.
        summary: a line about the bug.
        component: the part of the compiler, as in ``LocalizationReport``.
    """
    body = parse_python(source).body
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    imports = [node for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
    rest = [node for node in body if node not in imports]
    defined = [node for node in rest if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    backend = _only_backend(source)
    for outside in ([], defined) if defined else ([],):
        inside = [node for node in rest if node not in outside]
        backends = _LADDER[_LADDER.index(backend) :] if backend in _LADDER else ()
        for several in (backends, ()) if len(backends) > 1 else ((),):
            yield PytorchTest(_text(imports, outside, inside, several, name, summary, component), len(several) or 1)


def _only_backend(source: str) -> str | None:
    """Return the backend of a script that compiles once and names it."""
    named = [
        keyword.value
        for node in ast.walk(parse_python(source))
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "backend"
    ]
    value = named[0].value if len(named) == 1 and isinstance(named[0], ast.Constant) else None
    return value if isinstance(value, str) else None


def _text(
    imports: Sequence[ast.stmt],
    outside: Sequence[ast.stmt],
    inside: Sequence[ast.stmt],
    backends: Sequence[str],
    name: str,
    summary: str,
    component: str | None,
) -> str:
    place, owner = _PLACES.get(component or "", _PLACES["dynamo"])
    helpers = ["TestCase", "run_tests"]
    if backends:
        helpers = ["TestCase", "instantiate_parametrized_tests", "parametrize", "run_tests"]
    used = [ast.unparse(node) for node in imports if ast.unparse(node) != "import torch"]
    lines = [f'# Owner(s): ["{owner}"]', f"# For {place}.", "", "import torch", *used]
    lines += [f"from torch.testing._internal.common_utils import {', '.join(helpers)}", "", ""]
    lines += [ast.unparse(_asserting(node)) + "\n\n" for node in outside]
    lines.append("class TestCompiled(TestCase):")
    if backends:
        listed = ", ".join(f'"{one}"' for one in backends)
        lines.append(f'    @parametrize("backend", [{listed}])')
    lines.append(f"    def test_{name}(self{', backend' if backends else ''}):")
    lines.append(f"        # {summary}")
    for node in inside:
        written = ast.unparse(_with_backend(_asserting(node)) if backends else _asserting(node))
        lines += [f"        {line}" if line else "" for line in written.splitlines()]
    lines += ["", ""]
    if backends:
        lines += ["instantiate_parametrized_tests(TestCompiled)", "", ""]
    lines += ['if __name__ == "__main__":', "    run_tests()"]
    return "\n".join(lines) + "\n"


class _Asserting(ast.NodeTransformer):
    """Turn assertions of a script into those of a test case."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node  # an assertion there may be compiled

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """Turn ``assert a == b`` into ``self.assertEqual(a, b)``."""
        test = node.test
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
            return _call("assertEqual", test.left, test.comparators[0])
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return _call("assertFalse", test.operand)
        return _call("assertTrue", test)

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        """Turn ``torch.testing.assert_close(a, b)`` into ``self.assertEqual(a, b)``."""
        call = node.value
        if not isinstance(call, ast.Call) or ast.unparse(call.func) != _COMPARED:
            return node
        if any(keyword.arg not in _OPTIONS for keyword in call.keywords):
            return node
        return _call("assertEqual", *call.args, keywords=call.keywords)


class _ParametrizedBackend(ast.NodeTransformer):
    """Turn the backend that a script names into the parameter of the test."""

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        self.generic_visit(node)
        if node.arg == "backend":
            node.value = ast.Name("backend", ast.Load())
        return node


def _asserting(node: ast.stmt) -> ast.stmt:
    made: ast.stmt = _Asserting().visit(parse_python(ast.unparse(node)).body[0])
    return made


def _with_backend(node: ast.stmt) -> ast.stmt:
    made: ast.stmt = _ParametrizedBackend().visit(node)
    return made


def _call(name: str, *words: ast.expr, keywords: Sequence[ast.keyword] = ()) -> ast.Expr:
    owner = ast.Attribute(ast.Name("self", ast.Load()), name, ast.Load())
    return ast.Expr(ast.Call(owner, list(words), list(keywords)))
