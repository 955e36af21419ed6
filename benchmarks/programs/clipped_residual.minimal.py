# torch: 2.8.0
import torch
class A(torch.autograd.Function):
    def forward(c, x):
        c.mark_dirty(x)
        return x
    def backward(c, g): return g
@torch.compile(backend="eager")
def f(x):
    x = x + 1
    return x, A.apply(x) is x
assert f(torch.ones(1, requires_grad=True))[1]
