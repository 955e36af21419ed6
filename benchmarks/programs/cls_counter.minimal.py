# torch: 2.8.0
import torch
class A:
    n = 0
    def __init__(self):
        A.n += 1
@torch.compile(backend="eager")
def f(x):
    A()
    return x + A.n
print(f(torch.ones(1)), f(torch.ones(1)))
