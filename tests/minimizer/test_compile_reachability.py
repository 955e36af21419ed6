"""Compiled functions that nothing calls are told from others."""

from __future__ import annotations

import pytest

from torchbisect.core.python_text import parse_python
from torchbisect.minimizer.compile_reachability import compiles_but_never_calls
from torchbisect.minimizer.syntax.torch_names import TorchNames


@pytest.mark.parametrize(
    "program",
    [
        "def main():\n    g = torch.compile(f)\n    g(1)\nmain()",
        "@torch.compile\ndef f(x):\n    return x\nprint([f][0](1))",
        "@register\ndef main():\n    torch.compile(f)(1)",
        "class A:\n    def go(self):\n        return torch.compile(self.f)(1)\nA().go()",
        "class A:\n    @torch.compile\n    def go(self):\n        return 1\ngetattr(A(), 'go')()",
        "self.g = torch.compile(f)\nself.g(1)",
        "def fast(f):\n    return torch.compile(f)\n@fast\ndef f(x):\n    return x\nf(1)",
        "model.compile()\nmodel(1)",
    ],
)
def test_a_function_that_may_be_called_is_reachable(program: str) -> None:
    assert not compiles_but_never_calls(parse_python(program), TorchNames.of(parse_python(program)))
