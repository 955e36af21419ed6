# torch: 2.8.0
import torch
@torch.compile
def f(x):
    return x * 0
print(f(torch.tensor([float("inf"), float("nan"), 1.0])))
