"""Graphs that torch.compile left behind are found, and written as scripts."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

from torchbisect.core.errors import InputError
from torchbisect.pipeline.traces import find
from torchbisect.pipeline.traces.find import Graph, find_graphs
from torchbisect.pipeline.traces.graph_inputs import NotInTrace
from torchbisect.pipeline.traces.graph_script import graph_script

# As torch 2.8 writes it to a TORCH_TRACE log, with dynamic shapes and dropout; the sizes are in events before it.
GRAPH = """
import os
os.environ['TORCH_TRACE'] = '/home/me/trace'

import torch
from torch import tensor, device
import torch.fx as fx
from torch._dynamo.testing import rand_strided
from math import inf
import torch._inductor.inductor_prims

import torch._dynamo.config
import torch._inductor.config
import torch._functorch.config
import torch.fx.experimental._config
torch._dynamo.config.assume_static_by_default = False
torch._functorch.config.unlift_effect_tokens = True
torch._inductor.config.inplace_buffers = True

isolate_fails_code_str = None

# torch version: 2.8.0+cu128

from torch.nn import *
class Repro(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()

    def forward(self, primals_1, primals_2, primals_4, table):
        slice_2 = torch.ops.aten.slice.Tensor(primals_4, 1, 0, primals_1);  primals_4 = None
        seeds = torch.ops.prims.inductor_seeds.default(1, device(type='cpu'))
        seed = torch.ops.prims.inductor_lookup_seed.default(seeds, 0);  seeds = None
        drawn = torch.ops.prims.inductor_random.default([primals_2, primals_1], seed, 'rand');  seed = None
        return (torch.ops.aten.mul.Tensor(slice_2, drawn), table)

def load_args(reader):
    reader.symint(4)  # primals_1
    reader.symint(5)  # primals_2
    buf0 = reader.storage(None, 4*s27*(s77 - 1) + 4*s27)
    reader.tensor(buf0, (s77, 2*s27), is_leaf=True)  # primals_4
    buf1 = reader.storage(None, 48, dtype_hint=torch.int64)
    reader.tensor(buf1, (2, 2), (1, 3), dtype=torch.int64, storage_offset=1, is_leaf=True)  # table
load_args._version = 0
mod = Repro()
if __name__ == '__main__':
    from torch._dynamo.repro.after_aot import run_repro
    with torch.no_grad():
        run_repro(mod, load_args, accuracy=False, command='run', save_dir=None, tracing_mode='symbolic', check_str=None)
"""
EVENT = "V1125 02:47:22.000000 4585 torch/x.py:1] "


def log(*symbols: tuple[str, str]) -> str:
    lines = [f'{EVENT}{{"create_symbol": {{"symbol": "{name}", "val": "{value}"}}}}' for name, value in symbols]
    lines.append(f'{EVENT}{{"artifact": {{"name": "fx_graph_runnable", "encoding": "string"}}, "has_payload": "32"}}')
    lines += ["\t" + line for line in GRAPH.splitlines()]
    return "\n".join([*lines, f'{EVENT}{{"chromium_event": {{}}, "has_payload": "33"}}', '\t{"name": "x"}', ""])


def test_a_graph_of_a_log(tmp_path: Path) -> None:
    (tmp_path / "dedicated_log_torch_trace_a.log").write_text(log(("s77", "5"), ("s27", "9")))
    (graph,) = find_graphs(tmp_path)
    assert (graph.name, graph.torch) == ("dedicated_log_torch_trace_a.log, graph 1", "2.8.0")
    text = graph_script(graph)
    lines = text.splitlines()
    assert lines[lines.index("mod = Repro()") + 1 :] == [
        "primals_4 = torch.randn(5, 18)",
        "table = torch.as_strided(torch.randint(0, 2, (6,)), (2, 2), (1, 3), 1)",
        "compiled = torch.compile(mod, dynamic=True)",
        "with torch.no_grad():",
        "    output = compiled(4, 5, primals_4, table)",
    ]
    assert "torch.rand([primals_2, primals_1], device=seed.device)" in text
    imported = [ast.unparse(node) for node in ast.parse(text).body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert imported == [
        "import torch",
        "from torch import tensor, device",
        "import torch._inductor.inductor_prims",
        "import torch._dynamo.config",
    ]
    assert "torch._dynamo.config.assume_static_by_default = False" in text
    assert not any(word in text for word in ("/home/me", "unlift", "inplace_buffers", "= None", "run_repro"))


def test_a_size_that_nothing_states() -> None:
    with pytest.raises(NotInTrace, match="s77"):
        graph_script(Graph("graph", GRAPH, {"s27": 9}))


def test_a_size_that_an_argument_states() -> None:
    text = GRAPH.replace("symint(5)", "symint(5, expr='s77')").replace("symint(4)", "symint(4, expr='s27')")
    assert "primals_4 = torch.randn(5, 8)" in graph_script(Graph("graph", text))


def test_the_graphs_of_folders_are_in_their_order_and_each_once(tmp_path: Path) -> None:
    for number in (10, 9):
        place = tmp_path / f"-_0_{number}_0"
        place.mkdir()
        (place / f"fx_graph_runnable_{number}.txt").write_text(GRAPH.replace("(4)", f"({number})"))
    copy = tmp_path / "torchinductor/model__0_forward_1.0"
    copy.mkdir(parents=True)
    (copy / "fx_graph_runnable.py").write_text(GRAPH.replace("(4)", "(9)").replace("/home/me", "/home/you"))
    (copy / "output_code.py").write_text("import torch\n")
    assert [graph.name for graph in find_graphs(tmp_path)] == [
        "-_0_9_0/fx_graph_runnable_9.txt",
        "-_0_10_0/fx_graph_runnable_10.txt",
    ]


def test_a_script_and_a_folder_of_scripts_are_no_graphs(tmp_path: Path) -> None:
    (tmp_path / "repro.py").write_text("import torch\ntorch.compile(torch.sin)(torch.ones(1))\n")
    assert find_graphs(tmp_path) == find_graphs(tmp_path / "repro.py") == find_graphs(tmp_path / "none.py") == []


def test_a_graph_before_autograd_keeps_its_backend_and_runs_backward() -> None:
    text = GRAPH.replace("after_aot", "after_dynamo").replace("check_str=None", "backend='aot_eager'")
    text = text.replace("s27, is_leaf", "s27, requires_grad=True, is_leaf").replace(
        "(s77, 2*s27)", "(5, 6), requires_grad=True"
    )
    made = graph_script(Graph("repro.py", text))
    assert "torch.compile(mod, backend='aot_eager', dynamic=True)" in made
    assert "torch.randn(5, 6).requires_grad_()" in made
    assert "no_grad" not in made
    assert made.rstrip().endswith(".backward()")


def test_a_folder_of_a_stranger_neither_stops_nor_fills_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "repro.py")
    (tmp_path / "a.log").symlink_to("/dev/zero")
    (tmp_path / "loop.log").symlink_to("loop.log")
    (tmp_path / "deep.log").write_text('{"create_symbol": ' + "[" * 100_000 + "\n")
    (tmp_path / "fx_graph_runnable.py").write_text(GRAPH)
    assert [graph.name for graph in find_graphs(tmp_path)] == ["fx_graph_runnable.py"]
    for name in ("repro.py", "a.log", "loop.log", "nothing.py", "x" * 5000):
        assert find_graphs(tmp_path / name) == []
    monkeypatch.setattr(find, "_MOST_FILES", 4)
    with pytest.raises(InputError, match="more than 4 files"):
        find_graphs(tmp_path)


@pytest.mark.parametrize("size", ["9**9**9**9", "2**64", "s77 // 0", "Max()", "'x' * 9", "1e999"])
def test_a_size_that_no_tensor_has(size: str) -> None:
    text = GRAPH.replace("4*s27*(s77 - 1) + 4*s27", "4").replace("(s77, 2*s27)", f"({size}, 2)")
    assert text != GRAPH
    with pytest.raises(NotInTrace):
        graph_script(Graph("g", text))
