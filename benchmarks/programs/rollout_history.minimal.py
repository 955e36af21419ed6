# torch: 2.13.0
import collections
import torch

d = collections.deque([1, 2], maxlen=2)


@torch.compile(backend="eager")
def f(x):
    d.extendleft([3])
    return x + len(d)


assert f(torch.zeros(1)).item() == 2
