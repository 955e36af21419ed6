# torch: 2.13.0
"""Two-headed regressor.  Gradients of the auxiliary head are scaled by a schedule before
they reach the trunk (0 during warm-up); a health check stops on non-finite gradients."""
from __future__ import annotations

import collections
import torch
from torch import nn

torch.manual_seed(3)


class GradScale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, h, scale):
        ctx.scale = scale
        return h.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.scale, None


class Trunk(nn.Module):
    def __init__(self, d_in, d_hidden):
        super().__init__()
        self.first = nn.Linear(d_in, d_hidden)
        self.second = nn.Linear(d_hidden, d_hidden)

    def forward(self, x):
        return torch.sigmoid(self.second(torch.tanh(self.first(x))))


class SpreadHead(nn.Module):
    """Predicts a spread as the root of the selected activations."""

    def __init__(self, d_hidden):
        super().__init__()
        self.register_buffer("select", (torch.arange(d_hidden) % 3 != 0).float())

    def forward(self, h):
        return (h * self.select).sqrt().mean(dim=-1)


class Model(nn.Module):
    def __init__(self, d_in=6, d_hidden=12):
        super().__init__()
        self.trunk = Trunk(d_in, d_hidden)
        self.mean = nn.Linear(d_hidden, 1)
        self.spread = SpreadHead(d_hidden)

    def forward(self, x, aux_scale: int):
        h = self.trunk(x)
        gated = GradScale.apply(h, aux_scale)
        return self.mean(h).squeeze(-1), self.spread(gated)


class Criterion:
    def __init__(self, schedule):
        self.schedule = schedule

    def weight(self, epoch):
        for limit, w in self.schedule:
            if epoch < limit:
                return w
        return self.schedule[-1][1]

    def __call__(self, mean, spread, y):
        main = (mean - y).pow(2).mean()
        aux = (spread - (mean.detach() - y).abs()).pow(2).mean()
        return main + aux


class HealthMonitor:
    def __init__(self):
        self.events = collections.OrderedDict()

    def inspect(self, epoch, model):
        for name, p in model.named_parameters():
            if p.grad is not None:
                finite = bool(torch.isfinite(p.grad).all())
                self.events[(epoch, name)] = finite

    def broken(self):
        return [k for k, ok in self.events.items() if not ok]


def make_data(n=32, d=6):
    g = torch.Generator().manual_seed(5)
    x = torch.randn(n, d, generator=g)
    return x, torch.sin(x @ torch.linspace(-1, 1, d))


def train(compile_it, epochs=2):
    torch.manual_seed(17)
    model = Model()
    crit = Criterion(schedule=[(5, 0), (10, 1), (99, 2)])
    monitor = HealthMonitor()
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    x, y = make_data()

    def compute_loss(xb, yb, scale):
        mean, spread = model(xb, scale)
        return crit(mean, spread, yb)

    loss_fn = torch.compile(compute_loss) if compile_it else compute_loss
    for epoch in range(epochs):
        opt.zero_grad()
        loss = loss_fn(x, y, crit.weight(epoch))
        loss.backward()
        monitor.inspect(epoch, model)
        print(f"{'compiled' if compile_it else 'eager':>9} epoch {epoch} loss {loss.item():.4f} broken {len(monitor.broken())}")
        if monitor.broken():
            break
        opt.step()
    return monitor.broken()


def main():
    eager = train(False)
    compiled = train(True)
    assert eager == compiled, f"non-finite gradients: eager {eager}, compiled {compiled}"
    print("ok")


if __name__ == "__main__":
    main()
