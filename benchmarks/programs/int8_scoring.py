# torch: 2.13.0
"""Candidate scoring with int8 embeddings: a small retrieval service which keeps
binary feature codes and counts agreements with integer matrix products."""
import argparse
import collections
import logging
from dataclasses import dataclass
from typing import Callable, Dict, List, Sequence, Tuple

import torch
import torch.nn as nn

log = logging.getLogger("int8_scoring")

Hit = collections.namedtuple("Hit", ["user", "item", "score"])


@dataclass(frozen=True)
class ServiceConfig:
    users: int = 3
    queries_per_user: int = 1
    code_bits: int = 12
    items: int = 5
    top: int = 2
    seed: int = 11
    backend: str = "inductor"


class SignCoder(nn.Module):
    """Random projection followed by a sign, stored as int8 in {-1, +1}."""

    def __init__(self, dim: int, bits: int) -> None:
        super().__init__()
        self.register_buffer("planes", torch.randn(dim, bits))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.where(x @ self.planes >= 0, 1, -1).to(torch.int8)


class CodeTable:
    """Codes of the candidate items, one block per user segment."""

    def __init__(self, codes: torch.Tensor) -> None:
        if codes.dtype is not torch.int8:
            raise TypeError(f"codes must be int8, got {codes.dtype}")
        self.codes = codes
        self._names: Dict[int, str] = {}

    def name(self, idx: int) -> str:
        return self._names.setdefault(idx, f"item-{idx:03d}")

    def block(self) -> torch.Tensor:
        return self.codes.transpose(1, 2).contiguous()

    @property
    def nbytes(self) -> int:
        return self.codes.numel() * self.codes.element_size()


def agreement(query: torch.Tensor, block: torch.Tensor) -> torch.Tensor:
    """(B, q, bits) x (B, bits, items) -> signed number of agreeing bits."""
    mask = (query != 0).to(torch.int8)
    return torch.matmul(query * mask, block)


class ScoreCache:
    """Scores are kept packed, so their dtype decides how much we can hold."""

    def __init__(self, budget_bytes: int) -> None:
        self.budget = budget_bytes
        self.entries: "collections.OrderedDict[str, torch.Tensor]" = collections.OrderedDict()
        self.evicted: List[str] = []

    def used(self) -> int:
        return sum(t.numel() * t.element_size() for t in self.entries.values())

    def put(self, key: str, value: torch.Tensor) -> None:
        self.entries[key] = value
        while self.used() > self.budget and len(self.entries) > 1:
            old, _ = self.entries.popitem(last=False)
            self.evicted.append(old)

    def get(self, key: str) -> torch.Tensor:
        self.entries.move_to_end(key)
        return self.entries[key]


class ScoringService:
    def __init__(self, cfg: ServiceConfig, table: CodeTable) -> None:
        self.cfg = cfg
        self.table = table
        self.score: Callable = torch.compile(agreement, backend=cfg.backend)
        self.cache = ScoreCache(budget_bytes=cfg.users * cfg.items * 4)

    def rank(self, key: str, queries: torch.Tensor) -> List[Hit]:
        scores = self.score(queries, self.table.block())
        self.cache.put(key, scores)
        return self._hits(scores)

    def _hits(self, scores: torch.Tensor) -> List[Hit]:
        hits: List[Hit] = []
        for user in range(scores.shape[0]):
            row = scores[user].sum(0)
            order = sorted(range(row.numel()), key=lambda i: (-int(row[i]), i))
            for item in order[: self.cfg.top]:
                hits.append(Hit(user, self.table.name(item), int(row[item])))
        return hits


def synthetic(cfg: ServiceConfig, dim: int = 6) -> Tuple[SignCoder, torch.Tensor, torch.Tensor]:
    coder = SignCoder(dim, cfg.code_bits)
    items = torch.randn(cfg.users, cfg.items, dim)
    queries = items[:, : cfg.queries_per_user] + 0.1 * torch.randn(
        cfg.users, cfg.queries_per_user, dim
    )
    return coder, items, queries


def report(title: str, hits: Sequence[Hit]) -> None:
    print(title)
    for hit in hits:
        print(f"  user {hit.user} -> {hit.item} ({hit.score:+d})")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--users", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    cfg = ServiceConfig(users=args.users)
    torch.manual_seed(cfg.seed)
    coder, items, queries = synthetic(cfg)
    table = CodeTable(coder(items))
    service = ScoringService(cfg, table)
    for r in range(args.rounds):
        codes = coder(queries * (1 if r % 2 == 0 else -1))
        report(f"round {r}", service.rank(f"round-{r}", codes))
    log.info("table holds %d bytes", table.nbytes)
    print("cached", list(service.cache.entries), "evicted", service.cache.evicted)
    last = service.cache.get(f"round-{args.rounds - 1}")
    assert last.dtype == torch.int8, f"scores should stay packed, got {last.dtype}"


if __name__ == "__main__":
    main()
