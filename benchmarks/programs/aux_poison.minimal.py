# torch: 2.13.0
import torch


def f(x):
    return x * 0


x = torch.tensor([float("nan"), 1.0])
ref = f(x)
got = torch.compile(f, backend="inductor")(x)
assert torch.equal(ref.isnan(), got.isnan()), (ref, got)
