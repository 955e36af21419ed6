# torch: 2.8.0
import torch
class A:
    def m(self):
        return 1
a = A()
f = torch.compile(lambda x: x + a.m(), backend="eager")
f(torch.zeros(1))
a.m = lambda: 2
assert f(torch.zeros(1)) == 2
