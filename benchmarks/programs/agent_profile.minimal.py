# torch: 2.13.0
import torch


class A:
    k = 1


class B(A):
    pass


b = B()


@torch.compile(backend="eager")
def f(x):
    return x + b.k


f(torch.zeros(1))
B.k = 2
assert f(torch.zeros(1)).item() == 2
