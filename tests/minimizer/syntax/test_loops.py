"""The body of a loop runs once without its jumps."""

from __future__ import annotations

import ast

import pytest

from torchbisect.minimizer.syntax.loops import body_once


@pytest.mark.parametrize(
    ("body", "once"),
    [
        ("f(x)\nbreak", "f(x)"),
        ("if x is None:\n    continue\nf(x)", "if not x is None:\n    f(x)"),
        ("if x:\n    g(x)\n    continue\nf(x)", "if x:\n    g(x)\nelse:\n    f(x)"),
        ("if x:\n    break\nif y:\n    continue\nf(x)", "if not x:\n    if not y:\n        f(x)"),
        ("f(x)\nif x:\n    continue", "f(x)"),
    ],
)
def test_a_jump_leaves_what_it_skipped_to_the_other_branch(body: str, once: str) -> None:
    loop = ast.parse("for x in y:\n" + "\n".join(f"    {line}" for line in body.splitlines())).body[0]
    assert isinstance(loop, ast.For)
    assert "\n".join(map(ast.unparse, body_once(loop.body))) == once
