import torch
d = {1: 1}
@torch.compile(backend="eager")
def f(x):
    return x + d.get(1.0, 0)
assert f(torch.zeros(1)) == 1
