# torch: 2.13.0
import torch
class D:
    def __init__(self):
        self.v = 1
    def __get__(self, o, t):
        return self.v
class A:
    d = D()
class B(A):
    pass
torch.compile(lambda x: x + B.d, backend="eager")(torch.ones(1))
