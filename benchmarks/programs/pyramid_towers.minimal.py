# torch: 2.8.0
import torch
@torch.compile(backend="eager")
def f():
    *a, = torch.ones(1)
    a.pop()
f()
