"""The elements of containers get names of their own."""

from __future__ import annotations

import pytest
from pass_runner import after


@pytest.mark.parametrize(
    ("program", "left"),
    [
        ("a = {'n': 0, 'm': Net()}\na['n'] += 1\nkeep(a['m'])", "n = 0\nm = Net()\nn += 1\nkeep(m)"),
        (
            "n = 1\na = {'n': f(), 'class': g()}\nkeep(a['n'], a['class'], n)",
            "n = 1\nn2 = f()\nitem1 = g()\nkeep(n2, item1, n)",
        ),
        ("a = [f(), g()]\nkeep(a[1])", "f()\nitem0 = g()\nkeep(item0)"),
        ("a = {}\ndef f():\n    a[1] = g()\n    keep(a[1])\nf()", "def f():\n    item0 = g()\n    keep(item0)\nf()"),
    ],
)
def test_each_element_has_a_name(program: str, left: str) -> None:
    assert after("split_containers", program, "keep") == left


@pytest.mark.parametrize(
    "program",
    [
        "a = {'n': 0}\nkeep(a)",
        "a = {'n': 0}\nkeep(a[n])",
        "a = {'n': 0}\na = {'n': 1}\nkeep(a['n'])",
        "a = {'n': 0}\ndel a['n']\nkeep(a['n'])",
        "a = {}\ndef f():\n    a[1] = 2\nf()\nkeep(a[1])",
        "a = {1: 0}\ndef f():\n    a[1] = 2\nkeep(a[1])",
    ],
)
def test_a_container_that_is_more_than_its_elements_stays(program: str) -> None:
    assert after("split_containers", program, "keep").replace("\n\n", "\n") == program
