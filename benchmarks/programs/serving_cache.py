"""A tiny inference server: responses are memoised, and must be inference tensors."""
import hashlib
import threading
import weakref
from collections import OrderedDict
from typing import Dict, NamedTuple, Optional

import torch
import torch.nn as nn


class Request(NamedTuple):
    user: str
    tokens: tuple

    def key(self) -> str:
        raw = f"{self.user}:{self.tokens}".encode()
        return hashlib.sha1(raw).hexdigest()[:8]


class LRU:
    def __init__(self, capacity: int = 2):
        self.capacity = capacity
        self.store: "OrderedDict[str, torch.Tensor]" = OrderedDict()
        self.lock = threading.Lock()
        self.hits = 0

    def get(self, key: str) -> Optional[torch.Tensor]:
        with self.lock:
            if key in self.store:
                self.hits += 1
                self.store.move_to_end(key)
                return self.store[key]
        return None

    def put(self, key: str, value: torch.Tensor) -> None:
        if not value.is_inference():
            raise ValueError(f"cache takes only inference tensors (key {key})")
        with self.lock:
            self.store[key] = value
            while len(self.store) > self.capacity:
                self.store.popitem(last=False)


class Ranker(nn.Module):
    def __init__(self, vocab: int = 16, dim: int = 4):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.register_buffer("score", torch.randn(dim, 3))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        hidden = self.emb(tokens).mean(dim=0, keepdim=True)
        return (hidden @ self.score).softmax(dim=-1)[0]

    def predict(self, tokens: torch.Tensor) -> torch.Tensor:
        with torch.inference_mode():
            return self(tokens)


class Server:
    instances: "weakref.WeakSet[Server]" = weakref.WeakSet()

    def __init__(self, predict, name: str):
        self.predict = predict
        self.name = name
        self.cache = LRU()
        Server.instances.add(self)

    def handle(self, req: Request) -> Dict[str, float]:
        key = req.key()
        out = self.cache.get(key)
        if out is None:
            out = self.predict(torch.tensor(req.tokens))
            self.cache.put(key, out)
        return {f"item{i}": round(float(v), 4) for i, v in enumerate(out)}


REQUESTS = [
    Request("ann", (1, 2, 3)),
    Request("bob", (4, 5)),
    Request("ann", (1, 2, 3)),
]

torch.manual_seed(0)
ranker = Ranker().eval()
answers = {}
for server in (
    Server(ranker.predict, "plain"),
    Server(torch.compile(ranker.predict, backend="aot_eager"), "compiled"),
):
    answers[server.name] = [server.handle(r) for r in REQUESTS]
    print(server.name, "hits:", server.cache.hits, answers[server.name][0])
assert answers["plain"] == answers["compiled"]
