# torch: 2.13.0
import weakref
import torch


class A:
    pass


def f(x):
    a = A()
    r = weakref.ref(a)
    del a
    return x + 1, r() is None


x = torch.zeros(1)
ref = f(x)
got = torch.compile(f, backend="eager")(x)
assert ref[1] == got[1], (ref[1], got[1])
