"""Scripts that differ only in their own names have one canonical text."""

from __future__ import annotations

from torchbisect.minimizer.syntax.canonical_names import canonical_text

PROGRAM = """
import torch
def {f}({x}):
    {y} = {x} + 1
    global {g}
    {g} = {y}
    return {y}
{f}(torch.ones(1))
"""


def test_scripts_that_differ_only_in_their_names_have_one_text() -> None:
    one, other = PROGRAM.format(f="f", x="x", y="y", g="g"), PROGRAM.format(f="loss", x="guess", y="error", g="last")
    assert canonical_text(one) == canonical_text(other)
    assert canonical_text(one) != canonical_text(one.replace("+ 1", "+ 2"))


def test_two_names_in_the_place_of_one_make_another_text() -> None:
    one, other = PROGRAM.format(f="f", x="x", y="y", g="g"), PROGRAM.format(f="f", x="x", y="x", g="g")
    assert canonical_text(one) != canonical_text(other)


def test_names_that_others_may_look_up_stay() -> None:
    program = (
        "def f(x=1):\n    return x\nclass A:\n    n = 1\n    def g(self):\n        pass\nf(x=A.n)\ngetattr(A(), 'g')"
    )
    found = canonical_text(program)
    assert "x=A" not in found
    assert "x=" in found
    assert ".n" in found
    assert "def g(" in found


def test_what_is_no_python_is_its_own_canonical_text() -> None:
    assert canonical_text("f(") == "f("
