# torch: 2.8.0
"""Pruning experiment: patching of weight rows by several strategies, with a log of the refused ones."""
import abc
import torch
from torch import nn
import torch.nn.functional as F


class Strategy(abc.ABC):
    name = "?"

    @abc.abstractmethod
    def patch(self, weight, row): ...


class Functional(Strategy):
    name = "functional"

    def patch(self, weight, row):
        mask = torch.ones_like(weight)
        mask[row] = 0
        return weight * mask


class Guarded(Strategy):
    name = "guarded"

    def patch(self, weight, row):
        with torch.no_grad():
            out = weight.clone()
            out[row].zero_()
        return out


class Direct(Strategy):
    name = "direct"

    def patch(self, weight, row):
        weight[row] = 0.0
        return weight * 1.0


def ring(n, noise=0.05):
    g = torch.Generator().manual_seed(3)
    ang = torch.linspace(0, 6.2831, n)
    r = torch.where(torch.arange(n) % 2 == 0, 1.0, 2.0)
    x = torch.stack([r * ang.cos(), r * ang.sin()], 1)
    return x + noise * torch.randn(n, 2, generator=g), (r > 1.5).long()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1 = nn.Linear(2, 6)
        self.l2 = nn.Linear(6, 2)

    def forward(self, x, w=None):
        h = F.linear(x, self.l1.weight if w is None else w, self.l1.bias)
        return self.l2(F.relu(h))


def train(net, x, y, steps):
    opt = torch.optim.Adam(net.parameters(), lr=0.03)
    for _ in range(steps):
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()


def sweep(net, x, y, strategies):
    refused, scores = [], {}
    for s in strategies:
        patch = torch.compile(s.patch, backend="aot_eager")
        for row in (0, 4):
            try:
                w = patch(net.l1.weight, row)
            except RuntimeError as e:
                refused.append((s.name, row))
                continue
            scores[s.name, row] = (net(x, w).argmax(1) == y).float().mean().item()
    return refused, scores


def main():
    torch.manual_seed(6)
    x, y = ring(40)
    net = Net()
    print("loss %.2f" % train(net, x, y, 20))
    refused, scores = sweep(net, x, y, [Functional(), Guarded(), Direct()])
    for (name, row), acc in scores.items():
        print(f"{name:>10} row {row}: {acc:.2f}")
    print("refused", refused)
    print("zero rows", int((net.l1.weight == 0).all(1).sum()))


main()
