# torch: 2.13.0
import torch
import torch.nn.functional as F

def f(x):
    return F.interpolate(x, scale_factor=2, mode="bilinear")

x = torch.tensor([[[[0, 2]]]], dtype=torch.uint8)
assert torch.equal(torch.compile(f, backend="aot_eager")(x), f(x))
