# torch: 2.13.0
import torch


def f(x):
    return x + 1, format(3.14159, ".2f")


x = torch.zeros(1)
ref = f(x)
got = torch.compile(f, backend="eager")(x)
assert ref[1] == got[1], (ref[1], got[1])
