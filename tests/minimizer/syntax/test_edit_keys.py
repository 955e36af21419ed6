"""An edit is known by its place and effect, whatever else has changed."""

from __future__ import annotations

import ast

from torchbisect.minimizer.syntax.edit_keys import edit_keys
from torchbisect.minimizer.syntax.edits import Edit


def _statement(tree: ast.Module, text: str) -> ast.stmt:
    return next(node for node in ast.walk(tree) if isinstance(node, ast.stmt) and ast.unparse(node).startswith(text))


def _removal(program: str, text: str) -> str:
    tree = ast.parse(program)
    return edit_keys(tree)(Edit.remove(_statement(tree, text)))


def test_the_removal_of_a_class_is_the_same_when_the_class_has_lost_a_method() -> None:
    before = "class A:\n    def f(self):\n        return 1\n    def g(self):\n        return 2\nA().f()"
    after = "class A:\n    def f(self):\n        return 1\nA().f()"
    assert _removal(before, "class A") == _removal(after, "class A")
    assert _removal(before, "def f") != _removal(before, "def g")


def test_equal_statements_of_one_function_are_told_apart() -> None:
    tree = ast.parse("def f(x):\n    x = g(x)\n    x = g(x)")
    first, second = tree.body[0].body  # type: ignore[attr-defined]
    key = edit_keys(tree)
    assert key(Edit.remove(first)) != key(Edit.remove(second))


def test_a_loop_that_becomes_its_body_is_the_same_edit_with_a_shorter_body() -> None:
    def key(program: str) -> str:
        tree = ast.parse(program)
        loop = tree.body[0]
        return edit_keys(tree)(Edit.of(loop, list[ast.AST](loop.body)))  # type: ignore[attr-defined]

    assert key("for x in y:\n    f(x)\n    g(x)") == key("for x in y:\n    g(x)")
    branch = ast.parse("if x:\n    f(x)\nelse:\n    g(x)").body[0]
    of = edit_keys(ast.Module([branch], []))
    assert isinstance(branch, ast.If)
    assert of(Edit.of(branch, list[ast.AST](branch.body))) != of(Edit.of(branch, list[ast.AST](branch.orelse)))
