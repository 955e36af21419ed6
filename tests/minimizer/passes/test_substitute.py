"""Names are replaced by their values."""

from __future__ import annotations

import pytest
from pass_runner import after


@pytest.mark.parametrize(
    ("program", "words", "left"),
    [
        ("n = 4\nh = x + n\nkeep(h)", ["keep", "x"], "keep(x + 4)"),
        (
            "class A:\n    def __init__(self):\n        self.rate = 3\n        self.names = {'a': 'b'}\n"
            "        self.n = 1\n    def go(self):\n        self.n = 2\n"
            "        keep(self.rate, self.n, self.names)\nA().go()",
            ["keep"],
            "keep(3, self.n, {'a': 'b'})",
        ),
        (
            "def f(x):\n    return x\nclass A:\n    def __init__(self):\n        self.f = f\n"
            "    def go(self):\n        keep(self.f(1), self.f(2))\nA().go()",
            ["keep"],
            "keep(f(1), f(2))",
        ),
        (
            "import torch\nz = torch.bfloat16\ndef f(x):\n    keep(x.to(z), z)",
            ["keep"],
            "keep(x.to(torch.bfloat16), torch.b",
        ),
        ("a = []\nb = f()\na.append(b)\nkeep(a, a)", ["keep", "f"], "a = [f()]\nkeep(a, a)"),
        ("a = {'id'}\ndef f(x):\n    keep(x, a)\nf(1)", ["keep"], "def f(x):\n    keep(x, {'id'})\n"),
        ("a = deque([0], maxlen=2)\na.append(b)\nkeep(a, a)", ["keep"], "a = deque([0, b], maxlen=2)\nkeep(a, a)"),
        ("a = [1]\na += [b]\na.extend((2, 3))\nkeep(a, a)", ["keep"], "a = [1, b, 2, 3]\nkeep(a, a)"),
        (
            "class A:\n    def __init__(self):\n        self.a = []\n        self.a.append(b)\n"
            "        keep(self.a, self.a)\nA()",
            ["keep", "A()"],
            "        self.a = [b]\n",
        ),
        (
            "def f(y):\n    found = []\n    try:\n        g(y)\n    except E as e:\n        found.append(e.args)\n"
            "    return found[0]\nkeep(f(1), f(2))",
            ["keep", "try", "e.args"],
            "    except E as e:\n        return e.args\nkeep(f(1), f(2))",
        ),
    ],
)
def test_names_are_replaced_by_their_values(program: str, words: list[str], left: str) -> None:
    assert left in after("substitute", program, *words)
