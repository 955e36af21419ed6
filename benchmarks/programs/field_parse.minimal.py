# torch: 2.8.0
import torch
@torch.compile(backend="eager")
def f(x):
    try:
        int("a")
    except ValueError:
        return x + 1
f(torch.ones(1))
