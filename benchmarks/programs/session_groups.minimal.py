# torch: 2.8.0 2.13.0
import itertools
import torch
@torch.compile(backend="eager")
def f(x):
    a = [g for _, g in itertools.groupby([1])]
    return x + len(list(a[0]))
assert f(torch.zeros(1)) == 0
