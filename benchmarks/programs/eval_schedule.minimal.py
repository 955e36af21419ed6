# torch: 2.13.0
import torch


def f(x):
    return x + 1, 4 in range(10)


x = torch.zeros(1)
ref = f(x)
got = torch.compile(f, backend="eager")(x)
assert repr(ref[1]) == repr(got[1]), (ref[1], got[1])
