# torch: 2.8.0
import torch
class A:
    def __add__(self, o):
        return 0
class B(A):
    def __radd__(self, o):
        return 1
f = torch.compile(lambda x: x + (A() + B()), backend="eager")
assert f(torch.zeros(1)) == 1
