import collections

import torch


@torch.compile(backend="eager")
def f(x):
    return x + len(collections.deque([1], maxlen=0))


assert f(torch.zeros(1)) == 0
