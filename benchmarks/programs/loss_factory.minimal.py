# torch: 2.8.0
import torch
@torch.compile(backend="eager")
def f(x):
    def g():
        pass
    return x + 1, g.__name__
print(f(torch.ones(1)))
