# torch: 2.8.0
import torch

def f(x, n):
    try:
        return x + 1 / n
    except ZeroDivisionError:
        return x

x = torch.zeros(1)
assert torch.equal(torch.compile(f, backend="eager")(x, 0), f(x, 0))
