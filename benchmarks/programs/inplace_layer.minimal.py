# torch: 2.8.0
import torch
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x
    @staticmethod
    def backward(ctx, g):
        return g
@torch.compile(backend="eager")
def f(x):
    y = x * 1
    return F.apply(y) is y
print(f(torch.ones(1, requires_grad=True)))
