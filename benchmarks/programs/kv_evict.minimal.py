import collections
import torch
@torch.compile(backend="eager")
def f(x):
    d = collections.OrderedDict(a=1)
    d.move_to_end("a", last=False)
    return x + len(d)
f(torch.zeros(1))
