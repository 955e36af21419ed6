# torch: 2.8.0 2.13.0
import functools
import torch
@torch.compile(backend="eager")
def f(x):
    p = functools.partial(functools.partial(max, 1), 2)
    return x + len(p.args)
assert f(torch.zeros(1)) == 2
