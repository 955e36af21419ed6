"""FiLM-style conditioning with a flat list of interleaved (gamma, beta) pairs."""
import typing as t

import torch
import torch.nn as nn


def grouped(seq: t.Sequence, n: int = 2):
    """Classic idiom: grouped([a, b, c, d]) -> (a, b), (c, d)."""
    it = iter(seq)
    return zip(*[it] * n) if n != 2 else zip(it, it)


class Conditioner(nn.Module):
    def __init__(self, cond: int, sizes: t.List[int]):
        super().__init__()
        self.heads = nn.ModuleList()
        for s in sizes:
            self.heads.append(nn.Linear(cond, s))
            self.heads.append(nn.Linear(cond, s))

    def forward(self, c):
        return [h(c) for h in self.heads]


class FilmBlock(nn.Module):
    def __init__(self, din, dout):
        super().__init__()
        self.lin = nn.Linear(din, dout)
        self.act = nn.SiLU()

    def forward(self, x, gamma, beta):
        return self.act(self.lin(x) * (1 + gamma) + beta)


class FilmNet(nn.Module):
    def __init__(self, din=4, cond=3, width=5, depth=2):
        super().__init__()
        sizes = [width] * depth
        self.cond = Conditioner(cond, sizes)
        dims = [din] + sizes
        self.blocks = nn.ModuleList(FilmBlock(a, b) for a, b in zip(dims, dims[1:]))
        self.out = nn.Linear(width, 1)

    def forward(self, x, c):
        params = self.cond(c)
        for block, (gamma, beta) in zip(self.blocks, grouped(params)):
            x = block(x, gamma, beta)
        return self.out(x)


class Meter:
    def __init__(self):
        self.n = 0
        self.total = 0.0

    def __iadd__(self, v):
        self.n += 1
        self.total += float(v)
        return self

    def __float__(self):
        return self.total / max(self.n, 1)


def run(model, n_batches=3):
    g = torch.Generator().manual_seed(9)
    meter = Meter()
    outs = []
    with torch.no_grad():
        for _ in range(n_batches):
            x = torch.randn(6, 4, generator=g)
            c = torch.randn(6, 3, generator=g)
            y = model(x, c)
            meter += (y ** 2).mean()
            outs.append(y)
    return torch.cat(outs), float(meter)


torch.manual_seed(1)
net = FilmNet().eval()
y0, m0 = run(net)
y1, m1 = run(torch.compile(net, backend="eager"))
print(f"eager meter {m0:.6f}, compiled meter {m1:.6f}")
assert torch.allclose(y0, y1, atol=1e-5), (y0 - y1).abs().max()
