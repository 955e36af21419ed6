"""A trace has the values of expressions and of loop variables, and the script does what it did without."""

from __future__ import annotations

import ast

import pytest

from torchbisect.core.repro import Repro
from torchbisect.probe.probe import Probe

pytestmark = pytest.mark.torch

SCRIPT = """\
from __future__ import annotations
import torch

class Net(torch.nn.Module):
    def __init__(self, width: int = max(1, 2)) -> None:
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(2, width), torch.nn.ReLU())

    def forward(self, x: dict[str, torch.Tensor]) -> torch.Tensor:
        return self.body(x["image"]) * 0 + len(x)

class Options(dict):
    pass

net, found = Net(), []
for name, part in net.named_modules():
    if name.endswith("1"):
        found.append(name)
        hook = part.register_forward_hook(lambda *given: None)
for count in range(40):
    total = count * 2
options = Options(first=1)
options["names"] = list(found)
shown = sorted(options)
kind = "even" if total % 2 == 0 else "odd"
out = net({"image": torch.ones(3, 2)}).sum(1)
match (1, [2]):
    case (1, [value]):
        print(f"{value:>{len(kind)}}", total, [item for item in found if 0 < len(item) < 9 or item])
"""


def test_expressions_have_their_first_value(probe: Probe) -> None:
    nodes = {
        (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset): ast.unparse(node)
        for node in ast.walk(ast.parse(SCRIPT))
        if isinstance(node, ast.expr)
    }
    values = probe.trace(Repro(SCRIPT)).expressions
    found = {nodes.get((value.line, value.column, value.end_line, value.end_column)): value for value in values}
    assert found["x['image']"].text == "torch.ones(3, 2)"
    assert found["max(1, 2)"].text == "2"
    assert found["options"].text == "Options({'first': 1, 'names': ['body.1']})"
    assert found["count * 2"].text == "0"
    assert not found["count * 2"].exact
    assert found["total % 2 == 0"].exact
    assert found["net({'image': torch.ones(3, 2)}).sum(1)"].text == "torch.full((3,), 2.0, requires_grad=True)"


def test_loops_have_the_iterations_that_ran_most(probe: Probe) -> None:
    found = [item for item in probe.trace(Repro(SCRIPT)).iterations if item.line == 16]
    assert found[0].names == ("name", "part")
    assert found[0].texts == ("'body.1'", "net.body[1]")


def test_a_function_that_its_decorator_replaced_has_its_own_name(probe: Probe) -> None:
    script = (
        "table = {}\n\ndef enter(f):\n    table['f'] = (f, 1)\n\n@enter\ndef f():\n    pass\n\nfound = table['f']\n"
    )
    values = probe.trace(Repro(script)).expressions
    assert "(f, 1)" in [value.text for value in values]
