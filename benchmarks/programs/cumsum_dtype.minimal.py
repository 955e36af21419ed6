# torch: 2.8.0
import torch
@torch.compile
def f(x):
    return x + torch.ones(4, dtype=torch.int32).cumsum(0, dtype=torch.int32)
print(f(torch.zeros(4, dtype=torch.int32)).dtype)
