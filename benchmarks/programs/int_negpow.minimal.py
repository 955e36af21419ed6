# torch: 2.8.0
import torch
@torch.compile
def f(x):
    return x ** -1
try:
    print(f(torch.tensor([3, 1])))
except RuntimeError as e:
    print(e)
