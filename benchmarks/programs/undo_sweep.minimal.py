# torch: 2.13.0
import torch
@torch.compile(backend="eager")
def f(x):
    l = [1]
    r = reversed(l)
    l[0] = 2
    return x + next(r)
assert f(torch.zeros(1)) == 2
