# torch: 2.8.0
import math, torch
@torch.compile(backend="eager")
def f(x, s):
    return x * math.copysign(1.0, s)
print(f(torch.ones(1), 0.0), f(torch.ones(1), -0.0))
