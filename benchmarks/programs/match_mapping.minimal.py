# torch: 2.8.0
import torch

def f(x, d):
    match d:
        case {"a": a}:
            return x + a
    return x

x = torch.zeros(1)
d = {"a": 1}
assert torch.equal(torch.compile(f, backend="eager")(x, d), f(x, d))
