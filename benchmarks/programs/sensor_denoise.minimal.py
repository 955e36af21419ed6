# torch: 2.13.0
import torch
import torch.nn.functional as F


def f(x):
    return F.softshrink(x, 0.15)


x = torch.tensor([float("nan"), 1.0])
ref = f(x)
got = torch.compile(f, backend="inductor")(x)
assert torch.equal(ref.isnan(), got.isnan()), (ref, got)
