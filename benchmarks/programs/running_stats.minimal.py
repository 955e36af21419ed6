# torch: 2.13.0
import torch


@torch.compile(backend="aot_eager")
def f(x, o):
    torch.sum(x, 0, out=o)


o = torch.zeros((), dtype=torch.float64)
f(torch.ones(1), o)
assert o == 1
