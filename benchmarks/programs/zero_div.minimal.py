# torch: 2.8.0
import torch
@torch.compile(backend="eager", dynamic=True)
def f(x, n, d):
    try:
        s = n / d
    except ZeroDivisionError:
        s = 0.0
    return x + s
f(torch.ones(3), 3, 4)
print(f(torch.ones(3), 0, 0))
