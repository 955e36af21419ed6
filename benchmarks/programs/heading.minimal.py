# torch: 2.13.0
import torch

@torch.compile(backend="aot_eager")
def f(x, s):
    return x * s

x = torch.ones(1)
f(x, 0.0)
assert torch.signbit(f(x, -0.0))
