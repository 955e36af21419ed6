"""A suite of sixty tests: some fail on the releases that have one of four real bugs, some for other reasons.

The bugs are those of ``docs/corpus.md``; each is planted in more than one test, in another form.
"""

from __future__ import annotations

from pathlib import Path

#: The bugs by the first part of their tests' names: the last bad release and the first fixed one.
EDGES = {
    "test_letters": ("2.8.0", "2.9.0"),
    "test_packed": ("2.8.0", "2.9.0"),
    "test_gate": ("2.11.0", "2.12.0"),
    "test_curvature": ("2.12.1", "2.13.0"),
}

_SETS = '''
import operator
import pytest
import torch


@pytest.mark.parametrize("left", ["wx", "w"])
def test_letters(left):
    """operator.isub on a set has no effect in compiled code."""

    def select(x):
        names = set("wxyz")
        operator.isub(names, set("wxyz") - set(left))
        return x * len(names)

    x = torch.ones(3)
    assert torch.equal(torch.compile(select, backend="eager", fullgraph=True)(x), x * len(left))


@pytest.mark.parametrize("size", range(1, 11))
def test_lengths(size):
    compiled = torch.compile(lambda x: x + len(set(range(size))), backend="eager")
    assert compiled(torch.zeros(2)).tolist() == [size, size]
'''

_MATRICES = '''
import pytest
import torch


def pack_upper(values, size):
    out = torch.zeros(values.shape[0], size, size)
    i, j = torch.triu_indices(size, size, 1)
    out[:, i, j] = values
    return out - out.mT, out.requires_grad


@pytest.mark.parametrize("size", [3, 4])
def test_packed(size):
    """A buffer that is written by an index does not require a gradient in compiled code."""
    values = torch.ones(2, size * (size - 1) // 2, requires_grad=True)
    _, needs_grad = torch.compile(pack_upper, backend="eager")(values, size)
    assert needs_grad


@pytest.mark.parametrize("size", range(2, 12))
def test_trace(size):
    compiled = torch.compile(lambda x: x.diagonal().sum(), backend="eager")
    assert compiled(torch.eye(size)) == size


def test_addresses():
    assert torch.compile(lambda x: x.mT, backend="eager")(torch.eye(3)).sum() == 4  # wrong on every build
'''

_GRADIENTS = '''
import pytest
import torch


def gate(x, w):
    g = torch.sigmoid(x * w)
    g.detach_()
    return x * g, g.requires_grad


@pytest.mark.parametrize("size", [4, 6])
def test_gate(size):
    """detach_ leaves requires_grad of an intermediate as it was."""
    x = torch.linspace(-1, 1, size, requires_grad=True)
    _, needs_grad = torch.compile(gate, backend="eager")(x, torch.ones(size, requires_grad=True))
    assert not needs_grad


def squash(x):
    return torch.sigmoid(x).sum()


@pytest.mark.parametrize("size", [3, 5])
def test_curvature(size):
    """A gradient that is taken with create_graph has no graph."""
    x = torch.linspace(-1.0, 1.0, size, requires_grad=True)
    (slope,) = torch.autograd.grad(torch.compile(squash, backend="aot_eager", dynamic=False)(x), x, create_graph=True)
    assert slope.requires_grad


@pytest.mark.parametrize("size", range(2, 12))
def test_slope(size):
    x = torch.ones(size, requires_grad=True)
    torch.compile(lambda x: (x * x).sum(), backend="eager")(x).backward()
    assert x.grad.tolist() == [2.0] * size
'''

_OTHERS = '''
import os
import pytest
import torch
from shapes import square


@pytest.mark.parametrize("number", range(17))
def test_square(number):
    assert square(number) == number * number


def test_release():
    """Fails on older releases, and has nothing to do with compiling."""
    assert tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 9)


def test_missing_file():
    assert os.path.exists("a-file-that-is-nowhere")


@pytest.mark.skip(reason="as suites have them")
def test_skipped():
    raise AssertionError


@pytest.mark.xfail(reason="known")
def test_expected():
    raise AssertionError
'''

#: The tests that fail on every release.
BOTH = ("tests/test_matrices.py::test_addresses", "tests/test_others.py::test_missing_file")
#: A test that fails on releases before 2.9, compiled or not.
NOT_COMPILED = "tests/test_others.py::test_release"

_FILES = {
    "conftest.py": "",
    "shapes.py": "def square(number):\n    return number * number\n",
    "tests/test_sets.py": _SETS.lstrip(),
    "tests/test_matrices.py": _MATRICES.lstrip(),
    "tests/test_gradients.py": _GRADIENTS.lstrip(),
    "tests/test_others.py": _OTHERS.lstrip(),
}


def write_planted_suite(folder: Path) -> None:
    """Write the suite below a folder."""
    for name, text in _FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
