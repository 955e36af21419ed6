# torch: 2.8.0
import torch
@torch.compile(backend="eager")
def f(x):
    try:
        1 // 0
    except ZeroDivisionError:
        return x + 1
f(torch.ones(1))
