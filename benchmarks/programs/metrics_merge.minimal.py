import torch
@torch.compile(backend="eager")
def f(x):
    d = {}
    e = d
    e |= {1: 1}
    return x + len(d)
assert f(torch.zeros(1)) == 1
