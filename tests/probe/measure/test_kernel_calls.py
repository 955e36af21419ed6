"""Kernels are read from code of inductor as several releases write it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from torchbisect.probe.measure.kernel_calls import aligned, kernel_calls

FUNCTION = """\
triton_poi_fused_add_0 = async_compile.triton('''...''')


def call(args):
    arg0_1, = args
    # Source Nodes: [mm], Original ATen: [aten.mm]
    buf0 = empty_strided((64, 1), (1, 64), device='cpu', dtype=torch.float32)
    cpp_fused_native_layer_norm_0(c_void_p(arg0_1.data_ptr()), c_void_p(buf0.data_ptr()))

    with torch.cuda._DeviceGuard(0):
        triton_poi_fused_add_0.run(arg0_1, buf0, 64, grid=grid(64), stream=stream0)
        extern_kernels.mm(arg0_1, buf0, out=buf1)
        buf2 = torch.ops.aten.topk.default(buf1, 3)
        buf3 = extern_kernels.convolution(buf1, buf0)
    return (buf3, )


def benchmark_compiled_module(times=10, repeat=10):
    extern_kernels.mm(1, 2)
"""
METHOD = """\
class Runner:
    def __init__(self, partitions):
        self.partitions = partitions

    def call(self, args):
        arg0_1, = args
        cpp_fused_native_layer_norm_ones_0(buf1, arg0_1)
        return (buf9, )

runner = Runner(partitions=[])
call = runner.call
extern_kernels.mm(1, 2)
"""


def test_the_calls_of_a_function() -> None:
    assert kernel_calls([FUNCTION]) == (
        "cpp_fused_native_layer_norm_0",
        "triton_poi_fused_add_0",
        "extern_kernels.mm",
        "torch.ops.aten.topk.default",
        "extern_kernels.convolution",
    )


def test_the_calls_of_a_method_and_of_several_graphs() -> None:
    assert kernel_calls([METHOD, METHOD]) == ("cpp_fused_native_layer_norm_ones_0",) * 2
    assert kernel_calls(["", "def call(self"]) == ()


@given(st.lists(st.sampled_from("abc"), max_size=8), st.lists(st.sampled_from("abc"), max_size=8))
def test_a_table_has_every_call_of_both(left: list[str], right: list[str]) -> None:
    rows = list(aligned(left, right))
    assert [name for name, _ in rows if name] == left
    assert [name for _, name in rows if name] == right
