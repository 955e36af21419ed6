# torch: 2.8.0
import torch
class Scale(torch.autograd.Function):
    forward = staticmethod(lambda ctx, x: (ctx.mark_dirty(x), x.mul_(2))[1])
    backward = staticmethod(lambda ctx, g: g * 2)
def f(x):
    y = x * 1
    Scale.apply(y)
    return y.sum()
x = torch.ones(1, requires_grad=True)
torch.compile(f, backend="aot_eager")(x).backward()
assert x.grad.item() == 2.0, x.grad
