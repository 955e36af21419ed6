# torch: 2.8.0
"""In-place activation with memory accounting for a small residual stack."""
import torch
import torch.nn as nn


class InplaceLeaky(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, slope):
        ctx.slope = slope
        ctx.save_for_backward(x > 0)
        x.copy_(torch.where(x > 0, x, slope * x))
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        (positive,) = ctx.saved_tensors
        return torch.where(positive, grad, ctx.slope * grad), None


class Activation(nn.Module):
    def __init__(self, slope=0.1):
        super().__init__()
        self.slope = slope

    def forward(self, x):
        return InplaceLeaky.apply(x, self.slope)


class Accounting:
    """Counts buffers that had to be allocated by activations."""

    def __init__(self):
        self.reused = 0
        self.allocated = 0

    def compare(self, before, after):
        if after is before:
            self.reused += 1
        else:
            self.allocated += 1


class Stack(nn.Module):
    def __init__(self, dims, accounting):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(dims, dims[1:]))
        self.act = Activation()
        self.accounting = accounting

    def forward(self, x):
        for layer in self.layers[:-1]:
            pre = layer(x)
            post = self.act(pre)
            self.accounting.compare(pre, post)
            x = post
        return self.layers[-1](x)


def circle(n):
    a = torch.linspace(0, 6.0, n)
    pts = torch.stack([a.cos(), a.sin()], dim=1)
    return pts, (pts[:, :1] * pts[:, 1:])


def clip(params, limit):
    total = torch.sqrt(sum(p.grad.pow(2).sum() for p in params))
    scale = (limit / (total + 1e-6)).clamp(max=1.0)
    for p in params:
        p.grad.mul_(scale)
    return total.item()


def main():
    torch.manual_seed(5)
    acc = Accounting()
    stack = Stack([2, 8, 8, 1], acc)
    model = torch.compile(stack, backend="eager")
    x, y = circle(16)
    opt = torch.optim.SGD(stack.parameters(), lr=0.1)
    for it in range(3):
        opt.zero_grad()
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
        norm = clip(list(stack.parameters()), 0.5)
        opt.step()
        print(f"{it} loss={loss.item():.5f} norm={norm:.5f}")
    print("reused", acc.reused, "allocated", acc.allocated)


if __name__ == "__main__":
    main()
