# torch: 2.8.0
import torch
@torch.compile(backend="eager")
def f():
    i = iter([0, 1])
    return torch.ones(1), *zip(i, i)
assert f()[1][1]
