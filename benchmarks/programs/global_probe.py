# torch: 2.13.0
"""Numerics debugger: a process-wide forward hook clamps the activations of every module."""
import contextlib
import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook


@contextlib.contextmanager
def saturating(limit):
    def clamp(module, args, output):
        return output.clamp(-limit, limit)

    handle = register_module_forward_hook(clamp)
    try:
        yield
    finally:
        handle.remove()


class Residual(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.lin = nn.Linear(d, d)
        self.act = nn.SiLU()

    def forward(self, x):
        return x + self.act(self.lin(x))


class Classifier(nn.Module):
    def __init__(self, d=6, depth=2, classes=3):
        super().__init__()
        self.stem = nn.Linear(4, d)
        self.blocks = nn.Sequential(*[Residual(d) for _ in range(depth)])
        self.head = nn.Linear(d, classes)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)))


def dataset(n):
    g = torch.Generator().manual_seed(21)
    x = torch.randn(n, 4, generator=g)
    y = (x.sum(1) > 0).long() + (x[:, 0] > 1).long()
    return x, y


def train(model, x, y, epochs):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    sched = torch.optim.lr_scheduler.StepLR(opt, 2, 0.5)
    for _ in range(epochs):
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
    return loss.item()


def predict(model, x):
    @torch.compile(backend="aot_eager")
    def run(batch):
        return model(batch)

    with torch.no_grad():
        return torch.cat([run(b) for b in x.split(8)])


def main():
    torch.manual_seed(5)
    x, y = dataset(16)
    model = Classifier()
    print("train loss %.3f" % train(model, x, y, 4))
    model.eval()
    for limit in (0.25, 1.0):
        with saturating(limit):
            try:
                out = predict(model, 3 * x)
                print(f"limit {limit}: peak {out.abs().max().item():.3f} mean {out.mean().item():.3f}")
            except TypeError:
                print(f"limit {limit}: hook failed")


main()
