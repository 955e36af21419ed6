"""Graphs of dynamo, as torch logs them for every backend, are found, and written as scripts."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchbisect.pipeline.traces.find import Graph, find_graphs
from torchbisect.pipeline.traces.graph_inputs import NotInTrace
from torchbisect.pipeline.traces.graph_script import graph_script

# As torch 2.13 prints it, with a branch, a symbolic size and a parameter.
GRAPH = """\
class GraphModule(torch.nn.Module):
    def forward(self, L_w_: "f32[4, 4][4, 1]cpu", s77: "Sym(s77)", L_x_: "f32[s77, 4][4, 1]cpu", L_n_: "Sym(3)"):
        l_x_ = L_x_

        # File: /home/me/private.py:8 in forward, code: y = self.lin(x)
        y: "f32[s77, 4][4, 1]cpu" = torch._C._nn.linear(l_x_, L_w_);  l_x_ = None
        to: "f32[s77, 4][4, 1]cpu" = y.to(device(type='cpu')) * inf
        cond_true_0 = self.cond_true_0
        cond = torch.ops.higher_order.cond(y.sum() > L_n_, cond_true_0, cond_true_0, (y,));  cond_true_0 = None
        return (cond[0], to)

    class cond_true_0(torch.nn.Module):
        def forward(self, y: "f32[s77, 4][4, 1]cpu"):
            add: "f32[s77, 4][4, 1]cpu" = y + math.trunc(1.5);  y = None
            return (add,)
"""


def event(name: str, value: object, payload: str = "") -> list[str]:
    line = "V1125 20:52:25.138000 3978 torch/x.py:1] " + json.dumps({name: value, "frame_id": 0})
    return [line, *("\t" + part for part in payload.splitlines())]


def log(requires_grad: bool = True) -> str:
    lines = event("artifact", {"name": "torch_version"}, '{\n"pytorch_version": "2.13.0+cpu",\n"oss": true\n}')
    lines += event("create_symbol", {"symbol": "s77", "val": "5"})
    lines += event("describe_tensor", {"id": 0, "describer_id": 2, "requires_grad": requires_grad})
    lines += event("describe_source", {"id": 0, "describer_id": 2, "source": "L['w']"})
    lines += event("describe_tensor", {"id": 1, "describer_id": 2})
    lines += event("describe_source", {"id": 1, "describer_id": 2, "source": "L['x']"})
    lines += event("dynamo_output_graph", {"sizes": {}}, GRAPH)
    lines += event("aot_forward_graph", {}, GRAPH.replace("L_x_", "primals_1"))
    return "\n".join([*lines, ""])


def test_a_graph_of_a_log(tmp_path: Path) -> None:
    (tmp_path / "dedicated_log_torch_trace_a.log").write_text(log())
    (graph,) = find_graphs(tmp_path)
    assert (graph.torch, graph.sizes, graph.grads) == ("2.13.0", {"s77": 5}, {"L['w']"})
    text = graph_script(graph)
    assert "/home/me" not in text
    lines = text.splitlines()
    assert lines[2:6] == ["import torch", "from torch import device", "from math import inf", "import math"]
    assert "        self.cond_true_0 = Repro_cond_true_0()" in lines
    assert lines[lines.index("mod = Repro()") + 1 :][:4] == [
        "L_w_ = torch.randn(4, 4).requires_grad_()",
        "L_x_ = torch.randn(5, 4)",
        "compiled = torch.compile(mod, dynamic=True)",
        "output = compiled(L_w_, 5, L_x_, 3)",
    ]
    assert lines[-1].endswith(".backward()")


def test_no_backward_where_no_input_requires_a_gradient(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(log(requires_grad=False))
    (graph,) = find_graphs(tmp_path / "a.log")
    assert "backward" not in graph_script(graph)
    assert "requires_grad" not in graph_script(graph)


@pytest.mark.torch
def test_the_script_runs(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(log())
    text = graph_script(find_graphs(tmp_path)[0]).replace("torch.compile(mod, dynamic=True)", "mod")
    exec(compile(text, "repro.py", "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize(("cut", "said"), [(0, 0), (9, 1)])
def test_a_log_that_is_cut_is_named(tmp_path: Path, cut: int, said: int) -> None:
    text = log() + log()
    (tmp_path / "a.log").write_text(text[: len(text) - cut])
    notes: list[str] = []
    assert find_graphs(tmp_path, notes.append)
    assert notes == ["a.log ends in the middle of an entry: what was compiled then is not tried"] * said


def test_graphs_of_dynamo_come_first(tmp_path: Path) -> None:
    runnable = "class Repro(torch.nn.Module):\n    pass\ndef load_args(reader):\n    pass\n"
    (tmp_path / "fx_graph_runnable_1.txt").write_text(runnable)
    (tmp_path / "tlparse").mkdir()
    (tmp_path / "tlparse" / "dynamo_output_graph_7.txt").write_text(GRAPH)
    assert [graph.is_dynamo for graph in find_graphs(tmp_path)] == [True, False]


@pytest.mark.parametrize(
    ("old", "new", "missing"),
    [
        ("self.cond_true_0", "self.L__self___lin", "self.L__self___lin"),
        ('f32[s77, 4][4, 1]cpu", L_n_', 'f32[s78, 4][4, 1]cpu", L_n_', "s78"),
        ('f32[s77, 4][4, 1]cpu", L_n_', 'DTensor(f32[4][1]cpu)", L_n_', "the type of L_x_"),
        ("math.trunc(1.5)", "own_function(1.5)", "own_function"),
    ],
)
def test_what_a_trace_does_not_hold_is_named(old: str, new: str, missing: str) -> None:
    assert old in GRAPH
    with pytest.raises(NotInTrace) as raised:
        graph_script(Graph("graph", GRAPH.replace(old, new), {"s77": 5}))
    assert str(raised.value) == missing


@pytest.mark.torch
@given(
    shape=st.lists(st.integers(0, 5), max_size=4),
    order=st.randoms(),
    dtype=st.sampled_from(["f32", "bf16", "c64", "i64", "b8", "u8"]),
)
def test_an_input_has_the_shape_strides_and_type_that_torch_prints(
    shape: list[int], order: random.Random, dtype: str
) -> None:
    import torch

    dims = list(range(len(shape)))
    order.shuffle(dims)
    kind = next(kind for kind in vars(torch).values() if isinstance(kind, torch.dtype) and kind.abbr == dtype)
    wanted = torch.empty(shape, dtype=kind).permute(dims)
    printed = f"{dtype}{list(wanted.shape)}{list(wanted.stride())}{wanted.device}"
    head = f'class GraphModule(torch.nn.Module):\n    def forward(self, L_x_: "{printed}"):\n        return (L_x_,)\n'
    (line,) = [line for line in graph_script(Graph("graph", head)).splitlines() if line.startswith("L_x_ = ")]
    made = eval(line.removeprefix("L_x_ = "), {"torch": torch})
    assert (made.shape, made.dtype) == (wanted.shape, wanted.dtype)
    assert made.stride() == wanted.stride()


@pytest.mark.parametrize("device", ["cuda:0", "mps"])
def test_an_input_is_on_the_device_that_torch_prints(device: str) -> None:
    text = GRAPH.replace('"f32[4, 4][4, 1]cpu"', f'"f32[4, 4][4, 1]{device}"')
    assert f"L_w_ = torch.randn(4, 4, device='{device}')" in graph_script(Graph("graph", text, {"s77": 5}))
