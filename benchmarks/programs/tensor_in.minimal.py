# torch: 2.8.0
import torch
@torch.compile(backend="aot_eager")
def f(x, y):
    return x + 1, x in [y, x]
print(f(torch.ones(1), torch.zeros(1)))
