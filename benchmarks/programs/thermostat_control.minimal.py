# torch: 2.8.0
import torch
class A: p = property(lambda a: 0, lambda a, b: 0)
@torch.compile(backend="eager")
def f():
    a = A()
    a.p = 1
    return torch.ones(1), a.p
assert not f()[1]
