# torch: 2.13.0
"""Inference service: decode request headers, pick an operator, batch the work."""
import contextlib
import enum
import time

import torch
import torch.nn as nn


class Op(enum.Enum):
    ENCODE = "enc"
    POOL = "pool"
    SCORE = "score"


class Priority(enum.Enum):
    LOW = "low"
    HIGH = "high"


class ServiceStats:
    def __init__(self):
        self.counts = {op.name: 0 for op in Op}
        self.fallbacks = 0
        self.elapsed = 0.0

    @contextlib.contextmanager
    def timed(self):
        start = time.perf_counter()
        try:
            yield self
        finally:
            self.elapsed += time.perf_counter() - start


class Backbone(nn.Module):
    def __init__(self, dim=6):
        super().__init__()
        self.enc = nn.Linear(dim, dim)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, 1)

    def encode(self, x):
        return self.norm(torch.relu(self.enc(x)))

    def pool(self, x):
        return self.encode(x).mean(0, keepdim=True)

    def score(self, x):
        return torch.sigmoid(self.head(self.encode(x)))


class Router:
    """Maps wire codes on operators; codes we do not know get the default."""

    default = Op.ENCODE

    def __init__(self, stats):
        self.stats = stats

    def parse_code(self, raw):
        code = raw.strip().lower()
        try:
            op = Op(code)
        except ValueError:
            self.stats.fallbacks += 1
            op = self.default
        return op

    def parse_priority(self, text):
        return Priority.HIGH if text.startswith("h") else Priority.LOW

    def resolve(self, header):
        op = self.parse_code(header["code"])
        prio = self.parse_priority(header["priority"])
        self.stats.counts[op.name] += 1
        return op, prio


class Service:
    def __init__(self, model, compile_backend=None):
        self.model = model
        self.stats = ServiceStats()
        self.router = Router(self.stats)
        self.step = self._step
        if compile_backend:
            self.step = torch.compile(self._step, backend=compile_backend)

    def _step(self, header, x):
        op, prio = self.router.resolve(header)
        if prio is Priority.HIGH:
            x = x * 1.5
        if op == Op.POOL:
            return self.model.pool(x)
        if op == Op.SCORE:
            return self.model.score(x)
        return self.model.encode(x)

    def handle(self, requests):
        replies = []
        with self.stats.timed(), torch.no_grad():
            for header, payload in requests:
                replies.append(self.step(header, payload))
        return replies


def traffic():
    g = torch.Generator().manual_seed(3)
    codes = ["ENC", " score", "pool", "embed", "Score "]
    for i, code in enumerate(codes):
        yield {"code": code, "priority": "high" if i % 2 else "low"}, torch.randn(3, 6, generator=g)


def main():
    torch.manual_seed(0)
    model = Backbone().eval()
    plain = Service(model)
    fast = Service(model, compile_backend="eager")
    want = plain.handle(traffic())
    print("eager:", plain.stats.counts, "fallbacks", plain.stats.fallbacks)
    got = fast.handle(traffic())
    print("compiled:", fast.stats.counts, "fallbacks", fast.stats.fallbacks)
    for a, b in zip(want, got):
        torch.testing.assert_close(a, b)
    assert plain.stats.counts == fast.stats.counts
    assert plain.stats.fallbacks == fast.stats.fallbacks


if __name__ == "__main__":
    main()
