# torch: 2.8.0 2.13.0
import torch
class M(type):
    def __call__(cls):
        return 1
class A(metaclass=M):
    pass
@torch.compile(backend="eager")
def f(x):
    return x + (A() == 1)
assert f(torch.zeros(1)) == 1
