# torch: 2.8.0
"""Calibrated click model trained online; malformed batches are quarantined."""
import logging
from typing import Iterator, List, NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F

log = logging.getLogger("online")


class Batch(NamedTuple):
    ids: torch.Tensor
    dense: torch.Tensor
    clicks: torch.Tensor


class Quarantine:
    def __init__(self, limit=5):
        self.limit = limit
        self.batches: List[int] = []

    def __len__(self):
        return len(self.batches)

    def put(self, index, why):
        log.info("quarantine %d: %s", index, why)
        self.batches.append(index)
        if len(self) > self.limit:
            raise RuntimeError("too many bad batches")


class Embedder(nn.Module):
    def __init__(self, rows=16, dim=4):
        super().__init__()
        self.table = nn.Embedding(rows, dim)

    def forward(self, ids):
        return self.table(ids).sum(1)


class LinearProbability(nn.Module):
    """Outputs a probability by an affine map, not by a squashing function."""

    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.full((dim,), 0.02))
        self.bias = nn.Parameter(torch.tensor(0.5))

    def forward(self, h):
        return h @ self.weight + self.bias


class ClickModel(nn.Module):
    def __init__(self, dim=4, dense=3):
        super().__init__()
        self.embed = Embedder(dim=dim)
        self.mix = nn.Sequential(nn.Linear(dim + dense, dim), nn.Tanh())
        self.prob = LinearProbability(dim)
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, ids, dense):
        h = self.mix(torch.cat([self.embed(ids), dense], dim=1))
        level = dense[:, 0] * 0.1
        return self.prob(h) + level


def stream(n=6, size=4, seed=9) -> Iterator[Batch]:
    g = torch.Generator().manual_seed(seed)
    for i in range(n):
        dense = torch.rand(size, 3, generator=g)
        if i == 3:
            dense[1, 0] = 12.0  # upstream unit error
        ids = torch.randint(0, 16, (size, 2), generator=g)
        clicks = (torch.rand(size, generator=g) > 0.5).float()
        yield Batch(ids, dense, clicks)


def make_step(model, backend=None):
    def loss_fn(batch_ids, dense, clicks):
        p = model(batch_ids, dense)
        loss = F.binary_cross_entropy(p, clicks)
        return loss + 1e-3 * model.prob.weight.square().sum()

    return torch.compile(loss_fn, backend=backend) if backend else loss_fn


def run(backend=None):
    torch.manual_seed(2)
    model = ClickModel()
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    step = make_step(model, backend)
    bad = Quarantine()
    losses = []
    for index, batch in enumerate(stream()):
        opt.zero_grad()
        try:
            loss = step(batch.ids, batch.dense, batch.clicks)
        except RuntimeError as err:
            bad.put(index, str(err).splitlines()[0])
            continue
        loss.backward()
        opt.step()
        losses.append(float(loss))
    return losses, bad.batches, model


def main():
    logging.basicConfig(level=logging.WARNING)
    want, bad, ref = run()
    got, cbad, fast = run("inductor")
    print("eager    losses", [round(v, 4) for v in want], "quarantined", bad)
    print("compiled losses", [round(v, 4) for v in got], "quarantined", cbad)
    assert bad == [3]
    assert cbad == bad, "compiled run let a malformed batch through"
    for a, b in zip(ref.parameters(), fast.parameters()):
        torch.testing.assert_close(a, b)


if __name__ == "__main__":
    main()
