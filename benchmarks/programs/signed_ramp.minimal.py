# torch: 2.13.0
import torch

@torch.compile(backend="eager")
def f(x, z):
    return torch.copysign(x, torch.full((1,), z))

f(torch.ones(1), 0.0)
assert f(torch.ones(1), -0.0).item() == -1.0, f(torch.ones(1), -0.0)
