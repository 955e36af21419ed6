# torch: 2.8.0
import torch
class Meta(type):
    def __call__(cls):
        obj = super().__call__()
        obj.k = 5
        return obj
class A(metaclass=Meta):
    k = 1
@torch.compile(backend="eager")
def f(x):
    return x * A().k
print(f(torch.ones(1)))
