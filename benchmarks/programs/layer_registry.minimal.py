# torch: 2.8.0
import torch

class A:
    l = []

class B(A):
    pass

@torch.compile(backend="eager")
def f(x):
    B.l.append(1)
    return x + 1

f(torch.zeros(1))
assert A.l == [1]
