"""A shrunk script in the forms that a test of PyTorch's suite may take."""

from __future__ import annotations

import ast

from torchbisect.reports.render.pytorch_test import pytorch_tests
from torchbisect.reports.render.pytorch_test import test_place as place_of

SCRIPT = '''"""compiled gives 0 where eager gives 1"""
import torch

x = torch.ones(2)

def f(x):
    assert x.ndim == 1
    x.unfold(0, 1, 2).mul_(1)

other = x.clone()
f(other)
torch.compile(f, backend='aot_eager')(x)
torch.testing.assert_close(x, other, rtol=0.1, atol=0.2)  # eager: 1, compiled: 0
assert x.ndim == 1
assert not x.requires_grad
'''

FIRST = """\
# Owner(s): ["oncall: pt2"]
# For test/functorch/test_aotdispatch.py.

import torch
from torch.testing._internal.common_utils import TestCase, instantiate_parametrized_tests, parametrize, run_tests


class TestCompiled(TestCase):
    @parametrize("backend", ["aot_eager", "inductor"])
    def test_compiled_mutation(self, backend):
        # compiled gives 0 where eager gives 1
        x = torch.ones(2)
        def f(x):
            assert x.ndim == 1
            x.unfold(0, 1, 2).mul_(1)
        other = x.clone()
        f(other)
        torch.compile(f, backend=backend)(x)
        self.assertEqual(x, other, rtol=0.1, atol=0.2)
        self.assertEqual(x.ndim, 1)
        self.assertFalse(x.requires_grad)


instantiate_parametrized_tests(TestCompiled)


if __name__ == "__main__":
    run_tests()
"""


def forms(source: str, component: str | None = "pt2-dispatcher") -> list[tuple[str, int]]:
    summary = "compiled gives 0 where eager gives 1"
    made = pytorch_tests(source, name="compiled_mutation", summary=summary, component=component)
    return [(test.text, test.tests) for test in made]


def test_the_first_form_is_for_all_backends_from_its_own_on() -> None:
    found = forms(SCRIPT)
    assert found[0] == (FIRST, 2)
    assert [tests for _, tests in found] == [2, 1, 2, 1]
    assert len({text for text, _ in found}) == 4
    for text, _ in found:
        ast.parse(text)
    assert "\n\ndef f(x):\n    assert x.ndim == 1\n" in found[2][0]


def test_a_script_that_names_no_backend_or_two_has_one_test() -> None:
    plain = SCRIPT.replace(", backend='aot_eager'", "")
    assert [tests for _, tests in forms(plain)] == [1, 1]
    assert [tests for _, tests in forms(SCRIPT + "torch.compile(f, backend='eager')(x)\n")] == [1, 1]


def test_a_component_has_its_file() -> None:
    assert place_of("inductor") == "test/inductor/test_torchinductor.py"
    assert place_of(None) == place_of("dynamo") == "test/dynamo/test_repros.py"
