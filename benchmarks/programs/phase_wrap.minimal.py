# torch: 2.8.0
import torch
@torch.compile
def f(x):
    return x % 0.3
print(f(torch.full((8,), 1e7)))
