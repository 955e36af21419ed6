# torch: 2.8.0
import itertools
import torch


def f(x):
    it = iter([1, 2, 3])
    head = list(itertools.islice(it, 1))
    return x + 1, list(it)


x = torch.zeros(1)
ref = f(x)
got = torch.compile(f, backend="eager")(x)
assert ref[1] == got[1], (ref[1], got[1])
