# torch: 2.13.0
import torch
class A:
    pass
@torch.compile(backend="eager")
def f(x):
    a = A()
    a.v = 1
    return x + 1, vars(a)
assert f(torch.zeros(1))[1]
