# torch: 2.8.0
"""Serving loop: requests wait in lanes, a lane is padded to the batch size by repeating its requests."""
import argparse
import dataclasses
import heapq
import time
from typing import Dict, Iterable, List, Optional, Sequence

import torch
from torch import nn


@dataclasses.dataclass(order=True)
class Request:
    priority: int
    uid: str = dataclasses.field(compare=False)
    tokens: List[int] = dataclasses.field(compare=False, default_factory=list)


@dataclasses.dataclass
class ServerConfig:
    width: int = 8
    vocab: int = 32
    batch: int = 4
    lanes: Sequence[str] = ("interactive", "bulk")
    deadline_ms: float = 50.0
    temperature: float = 0.7


class RotaryEmbedding(nn.Module):
    def __init__(self, dim: int, base: float = 10000.0):
        super().__init__()
        self.register_buffer("inv", 1.0 / base ** (torch.arange(0, dim, 2).float() / dim))

    def forward(self, t: torch.Tensor) -> torch.Tensor:
        freqs = torch.outer(torch.arange(t.shape[-2]).float(), self.inv)
        cos, sin = freqs.cos(), freqs.sin()
        a, b = t[..., ::2], t[..., 1::2]
        return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)


class Layer(nn.Module):
    def __init__(self, cfg: ServerConfig):
        super().__init__()
        self.norm = nn.LayerNorm(cfg.width)
        self.qkv = nn.Linear(cfg.width, 3 * cfg.width, bias=False)
        self.rope = RotaryEmbedding(cfg.width)
        self.out = nn.Linear(cfg.width, cfg.width)

    def forward(self, h):
        q, k, v = self.qkv(self.norm(h)).chunk(3, dim=-1)
        att = (self.rope(q) @ self.rope(k).transpose(-1, -2)) / q.shape[-1] ** 0.5
        return h + self.out(att.softmax(-1) @ v)


class Lane:
    def __init__(self, name: str):
        self.name = name
        self.queue: List[Request] = []
        self.weights: List[float] = []

    def put(self, request: Request):
        heapq.heappush(self.queue, request)

    def take(self, n: int) -> List[Request]:
        return [heapq.heappop(self.queue) for _ in range(min(n, len(self.queue)))]


class Scheduler:
    def __init__(self, cfg: ServerConfig):
        self.cfg = cfg
        self.lanes: Dict[str, Lane] = {name: Lane(name) for name in cfg.lanes}
        self.stats = {"padded": 0, "served": 0}

    def submit(self, lane: str, request: Request) -> None:
        self.lanes[lane].put(request)

    def next(self, lane: str) -> Optional[List[Request]]:
        taken = self.lanes[lane].take(self.cfg.batch)
        if not taken:
            return None
        self.stats["served"] += len(taken)
        return taken


class Server(nn.Module):
    def __init__(self, cfg: ServerConfig):
        super().__init__()
        self.cfg = cfg
        self.embed = nn.Embedding(cfg.vocab, cfg.width)
        self.layers = nn.ModuleList(Layer(cfg) for _ in range(2))
        self.head = nn.Linear(cfg.width, cfg.vocab)

    def spread(self, scores: List[float], size: int) -> List[float]:
        padded = scores
        if len(padded) < size:
            padded *= -(-size // len(padded))
        return padded

    def forward(self, ids: torch.Tensor, scores: List[float]):
        h = self.embed(ids)
        for layer in self.layers:
            h = layer(h)
        self.spread(scores, self.cfg.batch)
        logits = self.head(h[:, -1]) / self.cfg.temperature
        weight = torch.tensor(scores).sum() / len(scores)
        return logits * weight, len(scores)


def requests(cfg: ServerConfig, n: int, seed: int = 3) -> Iterable[Request]:
    g = torch.Generator().manual_seed(seed)
    for i in range(n):
        toks = torch.randint(0, cfg.vocab, (5,), generator=g).tolist()
        yield Request(priority=i % 3, uid=f"r{i}", tokens=toks)


def main(argv=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=2)
    parser.add_argument("--backend", default="eager")
    args = parser.parse_args(argv)
    cfg = ServerConfig()
    torch.manual_seed(0)
    server = Server(cfg).eval()
    fast = torch.compile(server, backend=args.backend)
    scheduler = Scheduler(cfg)
    for r in requests(cfg, args.requests):
        scheduler.submit("interactive" if r.priority == 0 else "bulk", r)
    began = time.perf_counter()
    for lane in cfg.lanes:
        while (batch := scheduler.next(lane)) is not None:
            ids = torch.tensor([r.tokens for r in batch])
            scores = [1.0 + r.priority for r in batch]
            with torch.inference_mode():
                logits, used = fast(ids, scores)
            scheduler.stats["padded"] += used - len(batch)
            print(f"{lane:<12} {len(batch)} -> {used} best {logits.argmax(-1).tolist()}")
    late = (time.perf_counter() - began) * 1e3 > 1e6 * cfg.deadline_ms
    print("stats", scheduler.stats, "late" if late else "in time")


if __name__ == "__main__":
    main()
