# torch: 2.13.0
import torch


def f(x, y):
    return (x - y).abs().int()


x = torch.tensor([127, 5], dtype=torch.int8)
y = torch.tensor([-1, 3], dtype=torch.int8)
ref = f(x, y)
got = torch.compile(f, backend="inductor")(x, y)
assert torch.equal(ref, got), (ref, got)
