# torch: 2.13.0
"""A small decode service: sessions own key/value caches, a registry only sees them weakly."""
import logging
import weakref
from dataclasses import dataclass, field
from typing import Dict, List, Optional

import torch

log = logging.getLogger("svc")


@dataclass
class Request:
    user: str
    tokens: List[int]
    keep: bool = True


@dataclass
class Reply:
    user: str
    score: torch.Tensor
    live: int
    stats: Dict[str, int] = field(default_factory=dict)


class Scratch:
    """Short-lived workspace of one request."""

    def __init__(self, width):
        self.width = width
        self.rows = []

    def push(self, row):
        self.rows.append(row)

    def reduce(self):
        return torch.stack(self.rows).sum(0)


class LiveTable:
    def __init__(self):
        self.refs = []

    def track(self, obj):
        self.refs.append(weakref.ref(obj))

    def alive(self):
        return sum(1 for r in self.refs if r() is not None)


class Decoder:
    def __init__(self, vocab=16, dim=8):
        g = torch.Generator().manual_seed(2)
        self.emb = torch.randn(vocab, dim, generator=g)
        self.out = torch.randn(dim, generator=g)

    def step(self, token, state):
        return torch.tanh(self.emb[token] + 0.5 * state)


def decode(decoder, x, tokens, keep):
    table = LiveTable()
    main_ws = Scratch(x.shape[0])
    table.track(main_ws)
    state = x
    for t in tokens:
        state = decoder.step(t, state)
        main_ws.push(state)
    total = main_ws.reduce()
    if keep:
        side = Scratch(x.shape[0])
        table.track(side)
        side.push(total * 0.5)
        total = total + side.reduce()
        del side
    return (total * decoder.out).sum(), table.alive()


class Service:
    def __init__(self, decoder, runner):
        self.decoder = decoder
        self.runner = runner
        self.start = torch.zeros(8)
        self.served = 0

    def handle(self, req: Request) -> Optional[Reply]:
        if not req.tokens:
            log.warning("empty request of %s", req.user)
            return None
        score, live = self.runner(self.decoder, self.start, req.tokens, req.keep)
        self.served += 1
        return Reply(req.user, score, live, {"n": len(req.tokens)})


REQUESTS = [
    Request("ann", [1, 2, 3]),
    Request("bob", [4, 4], keep=False),
    Request("cy", []),
    Request("dee", [7, 1, 0, 5]),
]


def serve(runner):
    svc = Service(Decoder(), runner)
    return [r for r in map(svc.handle, REQUESTS) if r is not None]


def check_same(a, b):
    torch.testing.assert_close(a.score, b.score)
    assert a.stats == b.stats
    assert a.live == b.live, f"{a.user}: {a.live} live workspaces in eager, {b.live} when compiled"


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR)
    eager = serve(decode)
    compiled = serve(torch.compile(decode, backend="eager"))
    for e, c in zip(eager, compiled):
        print(e.user, float(e.score), "live", e.live, c.live)
    for e, c in zip(eager, compiled):
        check_same(e, c)
