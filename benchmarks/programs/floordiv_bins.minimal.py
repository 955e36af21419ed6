# torch: 2.13.0
import torch

def f(x):
    return x // 0.1

x = torch.tensor([1.0])
assert torch.equal(torch.compile(f, backend="inductor")(x), f(x))
