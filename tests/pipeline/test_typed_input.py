"""Scripts that read standard input are told from those that do not."""

from __future__ import annotations

import pytest

from torchbisect.pipeline.typed_input import reads_input


@pytest.mark.parametrize(
    "text",
    [
        "import sys\nfor line in sys.stdin: pass",
        "from sys import stdin",
        "name = input()",
        "import fileinput",
        "import os\nos.read(0, 4)",
        "open(0).read()",
        "open('/dev/stdin')",
    ],
)
def test_it_reads(text: str) -> None:
    assert reads_input([text])


@pytest.mark.parametrize(
    "text",
    [
        "input = torch.ones(2)\nmodel(input)",
        "def forward(self, input): return self.input(input)",
        "print('stdin')",
        "subprocess.run(['a'], stdin=subprocess.DEVNULL)",
        "torch.open(False)",
        "x = open(path)",
        "no python (",
    ],
)
def test_it_does_not(text: str) -> None:
    assert not reads_input([text])


def test_a_dash_stands_for_it() -> None:
    assert reads_input([""], ["--file", "-"])
    assert not reads_input([""], ["-v", "--"])
