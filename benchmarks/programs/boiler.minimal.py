# torch: 2.8.0
import torch

class A:
    _v = 0

    @property
    def v(self):
        return self._v

    @v.setter
    def v(self, n):
        self._v = n * 2

a = A()

@torch.compile(backend="eager")
def f(x):
    a.v = 1
    return x + a.v

assert f(torch.zeros(1)) == 2
