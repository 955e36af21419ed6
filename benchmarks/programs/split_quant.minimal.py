# torch: 2.13.0
import torch
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 1, x * 1
    @staticmethod
    def backward(ctx, g, h):
        return g * (h is None)
x = torch.ones(1, requires_grad=True)
torch.compile(lambda: F.apply(x)[0], backend="aot_eager")().backward()
assert x.grad
