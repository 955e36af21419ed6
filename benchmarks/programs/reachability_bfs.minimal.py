# torch: 2.8.0
import torch
@torch.compile(backend="eager")
def f():
    l = [1, 2]
    for i in l: l.pop()
    return torch.ones(1), l
assert f()[1]
