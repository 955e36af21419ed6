# torch: 2.8.0
import torch
@torch.compile(backend="aot_eager")
def f(x):
    return x.expand(3, 2).add_(1)
try:
    print(f(torch.ones(2)))
except RuntimeError as e:
    print(e)
