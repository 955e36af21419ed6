# torch: 2.8.0 2.13.0
"""Retrieval head on frozen features; cached features must never enter a trained graph by accident."""
import hashlib
import torch
from torch import nn


class FeatureCache:
    def __init__(self):
        self.store = {}
        self.misses = 0

    @staticmethod
    def key(t):
        return hashlib.sha1(t.numpy().tobytes()).hexdigest()

    def get(self, t, compute):
        k = self.key(t)
        if k not in self.store:
            self.misses += 1
            self.store[k] = compute(t)
        return self.store[k]


class Backbone(nn.Module):
    def __init__(self, d=5):
        super().__init__()
        self.conv = nn.Conv1d(1, d, 3, padding=1)

    def forward(self, x):
        return torch.relu(self.conv(x)).amax(-1)


class Service:
    def __init__(self):
        self.backbone = Backbone().eval()
        self.cache = FeatureCache()
        self.head = nn.Linear(5, 2)
        self.copied = 0

    @torch.compile(backend="aot_eager")
    def embed(self, x):
        with torch.inference_mode():
            return self.backbone(x)

    def features(self, x):
        feats = self.cache.get(x, self.embed)
        if feats.is_inference():
            self.copied += 1
            feats = feats.clone()
        return feats

    def train(self, batches, epochs=2):
        opt = torch.optim.SGD(self.head.parameters(), lr=0.1, momentum=0.9)
        for _ in range(epochs):
            for x, y in batches:
                loss = nn.functional.cross_entropy(self.head(self.features(x)), y)
                opt.zero_grad()
                loss.backward()
                opt.step()
        return loss.item()


def make_batches(k, n, length):
    g = torch.Generator().manual_seed(12)
    out = []
    for _ in range(k):
        y = torch.arange(n) % 2
        x = torch.randn(n, 1, length, generator=g) + y[:, None, None]
        out.append((x, y))
    return out


def main():
    torch.manual_seed(0)
    svc = Service()
    loss = svc.train(make_batches(2, 6, 10))
    print("loss %.3f misses %d" % (loss, svc.cache.misses))
    print("protective copies", svc.copied)


if __name__ == "__main__":
    main()
