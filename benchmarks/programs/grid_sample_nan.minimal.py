# torch: 2.13.0
import torch
import torch.nn.functional as F

def f(x, g):
    return F.grid_sample(x, g, align_corners=False)

x = torch.ones(1, 1, 2, 2)
g = torch.tensor([[[[float("nan"), 0.0]]]])
torch.testing.assert_close(torch.compile(f, backend="inductor")(x, g), f(x, g), equal_nan=True)
