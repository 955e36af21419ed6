# torch: 2.8.0
import torch
@torch.compile
def f(x):
    return x // 2
print(f(torch.tensor([float("inf"), 3.0])))
