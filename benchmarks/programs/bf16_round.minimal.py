# torch: 2.8.0
import torch
@torch.compile
def f(x):
    return x.to(torch.bfloat16).float()
print(f(torch.tensor([3.14159])))
