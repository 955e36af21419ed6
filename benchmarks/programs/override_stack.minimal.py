# torch: 2.8.0
import torch


def f(x):
    d = {"a": 1}
    alias = d
    d |= {"b": 2}
    return x + 1, len(alias)


x = torch.zeros(1)
ref = f(x)
got = torch.compile(f, backend="eager")(x)
assert ref[1] == got[1], (ref[1], got[1])
