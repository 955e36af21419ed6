# torch: 2.13.0
import torch

def f(x):
    return ~x.any()

x = torch.tensor([0, 3], dtype=torch.uint8)
assert torch.compile(f, backend="inductor")(x).item() == f(x).item()
