"""Objects are written as their path from a name in scope."""

from __future__ import annotations

import sys
from typing import Any

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from torchbisect.probe.agent.trace.scope_paths import path_expression  # noqa: E402


class Probe:
    """A class as a script's own module has it."""

    __module__ = "__main__"

    def __init__(self, model: Any) -> None:
        self.model = model


def _model() -> Any:
    model = torch.nn.Module()
    model.body = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.ReLU())
    model.heads = torch.nn.ModuleDict({"a": torch.nn.Linear(1, 1)})
    model.scales = torch.nn.ParameterDict({"b": torch.nn.Parameter(torch.ones(1))})
    return model


@pytest.mark.parametrize(
    ("path", "without", "written"),
    [
        ("net.body[1]", (), "net.body[1]"),
        ("net.body[0].weight", (), "net.body[0].weight"),
        ("net.heads['a']", (), "net.heads['a']"),
        ("net.scales['b']", (), "net.scales['b']"),
        ("net", (), "net"),
        ("net.body", ("net",), "probe.model.body"),
        ("found['x'][0]", (), "found['x'][0]"),
        ("torch.nn.Linear(1, 1)", (), None),
        ("[1]", (), None),
        ("torch.ones(1)", (), None),
    ],
)
def test_a_path_leads_to_the_object(path: str, without: tuple[str, ...], written: str | None) -> None:
    net = _model()
    probe = Probe(net)
    found = {"x": [Probe(None)]}
    names = {"torch": torch, "net": net, "probe": probe, "found": found}
    value = eval(path, names)
    expression = path_expression(value, sys._getframe(), (*without, "value", "names"))
    assert (expression.text if expression else None) == written
    if written is not None:
        assert eval(written, names) is value
