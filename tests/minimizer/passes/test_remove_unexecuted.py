"""Code that did not run is removed."""

from __future__ import annotations

from pass_runner import after

from torchbisect.core.trace import Trace


def test_code_that_did_not_run_is_removed() -> None:
    program = "def f(x):\n    if x:\n        a()\n    else:\n        b()\n"
    program += "    try:\n        c()\n    except E:\n        d()\nf(1)"
    text = after("remove_unexecuted", program, "f(1)", trace=Trace(frozenset({1, 2, 3, 6, 7, 10}), (), ()))
    assert text == "def f(x):\n    a()\n    c()\nf(1)"
