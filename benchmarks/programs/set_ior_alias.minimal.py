# torch: 2.8.0
import torch
@torch.compile(backend="aot_eager")
def f(x):
    a = {1}
    b = a
    a |= {2}
    return x * len(b)
print(f(torch.ones(1)))
