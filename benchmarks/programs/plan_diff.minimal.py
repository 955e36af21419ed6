# torch: 2.8.0
import torch
from collections import OrderedDict
@torch.compile(backend="eager")
def f(x):
    return x + (OrderedDict(a=1, b=2) == OrderedDict(b=2, a=1))
assert f(torch.zeros(1)) == 0
