"""The part of a file that one of its tests reaches."""

from __future__ import annotations

import pytest

from torchbisect.triage.suite.reached_source import reached_source

FILE = """
import torch
import pytest

WIDTH = abs(3)

@pytest.fixture
def inputs():
    return torch.rand(WIDTH).sin()

def helper(x):
    return x.cos()

def test_one(inputs):
    helper(inputs)

def test_two():
    torch.ones(2).tan()

class TestHead:
    def test_one(self):
        torch.ones(2).exp()

    def test_two(self):
        torch.ones(2).log()
"""


@pytest.mark.parametrize(
    ("node", "there", "not_there"),
    [
        ("test_one", ("sin", "cos", "abs"), ("tan", "exp")),
        ("test_one[a-b[1]]", ("sin", "cos"), ("tan",)),
        ("test_two", ("tan",), ("sin", "cos", "abs", "exp")),
        ("TestHead::test_two", ("log",), ("exp", "tan")),
        ("TestHead::test_two[3]", ("log",), ("exp",)),
        ("test_nowhere", ("sin", "cos", "tan", "exp"), ()),
    ],
)
def test_a_test_reaches_what_it_names(node: str, there: tuple[str, ...], not_there: tuple[str, ...]) -> None:
    text = reached_source(FILE, node)
    assert all(word in text for word in there)
    assert not any(f"{word}(" in text for word in not_there)


def test_a_text_that_is_no_python_is_returned_whole() -> None:
    assert reached_source("def (", "test") == "def ("
