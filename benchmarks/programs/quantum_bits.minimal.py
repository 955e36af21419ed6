# torch: 2.8.0
import torch
@torch.compile(backend="eager")
def f(x):
    return x << 1
f(torch.tensor([True]))
