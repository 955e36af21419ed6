# torch: 2.8.0
import collections
import torch
@torch.compile(backend="eager")
def f(x):
    d = collections.OrderedDict(a=1, b=2)
    d.move_to_end("b", last=False)
    return x + 1, list(d)
f(torch.ones(1))
