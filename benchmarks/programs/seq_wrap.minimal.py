# torch: 2.8.0
import torch


def f(x):
    return x + 1 < x


x = torch.tensor([2**31 - 1, 5], dtype=torch.int32)
ref = f(x)
got = torch.compile(f, backend="inductor")(x)
assert torch.equal(ref, got), (ref, got)
