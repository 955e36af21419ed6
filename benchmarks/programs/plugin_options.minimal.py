# torch: 2.8.0
import torch
class A:
    def __getattr__(self, name):
        log.append(name)
        raise AttributeError
log = []
@torch.compile(backend="eager")
def f(x, a):
    return x * getattr(a, "gain", 1.0)
f(torch.ones(1), A())
