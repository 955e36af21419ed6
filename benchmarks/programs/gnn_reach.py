# torch: 2.8.0
"""
Reachability pooling for tiny road networks.

A graph is a plain adjacency dict.  For every "depot" node we walk the part of the
network which can be reached from it and pool the node embeddings on the way, with
a weight that decays with the hop count.  The pooled vectors are then scored by a
small MLP.  Training is deliberately short; this is the smoke version of the job.
"""
import argparse
import logging
import random
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F

logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
log = logging.getLogger("reach")

DTYPE = torch.float32
DEVICE = torch.device("cpu")


@dataclass
class GraphConfig:
    num_nodes: int = 9
    extra_edges: int = 3
    embed_dim: int = 6
    max_hops: int = 4
    decay: float = 0.5
    depots: List[int] = field(default_factory=lambda: [0, 4])


@dataclass
class RunConfig:
    epochs: int = 2
    lr: float = 0.01
    seed: int = 7
    backend: str = "eager"
    graph: GraphConfig = field(default_factory=GraphConfig)


class RoadGraph:
    """A ring with some shortcuts."""

    def __init__(self, cfg: GraphConfig, seed: int) -> None:
        self.cfg = cfg
        rng = random.Random(seed)
        self.adj: Dict[int, List[int]] = defaultdict(list)
        for i in range(cfg.num_nodes):
            self.add_edge(i, (i + 1) % cfg.num_nodes)
        for _ in range(cfg.extra_edges):
            u, v = rng.sample(range(cfg.num_nodes), 2)
            self.add_edge(u, v)
        # freeze, so nobody creates a node by looking at it
        self.adj = {k: sorted(v) for k, v in self.adj.items()}

    def add_edge(self, u: int, v: int) -> None:
        if v not in self.adj[u]:
            self.adj[u].append(v)

    def neighbours(self, u: int) -> List[int]:
        return self.adj[u]

    def __len__(self) -> int:
        return self.cfg.num_nodes

    @property
    def num_edges(self) -> int:
        return sum(len(v) for v in self.adj.values())


class NodeEncoder(nn.Module):
    def __init__(self, num_nodes: int, dim: int) -> None:
        super().__init__()
        self.table = nn.Embedding(num_nodes, dim)
        self.norm = nn.LayerNorm(dim)
        self.register_buffer("scale", torch.full((dim,), 0.9, dtype=DTYPE))

    def forward(self) -> torch.Tensor:
        return self.norm(self.table.weight) * self.scale


class ReachPool(nn.Module):
    """Pools all that can be reached from a root in `max_hops` steps."""

    def __init__(self, graph: RoadGraph, cfg: GraphConfig) -> None:
        super().__init__()
        self.graph = graph
        self.max_hops = cfg.max_hops
        self.decay = cfg.decay

    def forward(self, h: torch.Tensor, root: int) -> torch.Tensor:
        pooled = torch.zeros_like(h[0])
        queue: List[Tuple[int, int]] = [(root, 0)]
        visited = [root]
        # the queue grows while we walk over it
        for node, hops in queue:
            pooled = pooled + h[node] * (self.decay ** hops)
            if hops == self.max_hops:
                continue
            for nxt in self.graph.neighbours(node):
                if nxt not in visited:
                    visited.append(nxt)
                    queue.append((nxt, hops + 1))
        return pooled


class DepotScorer(nn.Module):
    def __init__(self, graph: RoadGraph, cfg: GraphConfig) -> None:
        super().__init__()
        self.depots = list(cfg.depots)
        self.encoder = NodeEncoder(len(graph), cfg.embed_dim)
        self.pool = ReachPool(graph, cfg)
        self.head = nn.Sequential(
            nn.Linear(cfg.embed_dim, 8),
            nn.Tanh(),
            nn.Linear(8, 1),
        )
        self._init_weights()

    def _init_weights(self) -> None:
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.xavier_uniform_(m.weight)
                nn.init.zeros_(m.bias)

    def forward(self) -> Tuple[torch.Tensor, torch.Tensor]:
        h = self.encoder()
        pooled = torch.stack([self.pool(h, d) for d in self.depots])
        return self.head(pooled).squeeze(-1), pooled


class Trainer:
    def __init__(self, cfg: RunConfig) -> None:
        torch.manual_seed(cfg.seed)
        self.cfg = cfg
        self.graph = RoadGraph(cfg.graph, cfg.seed)
        self.model = DepotScorer(self.graph, cfg.graph).to(DEVICE)
        self.step_fn = torch.compile(self.model, backend=cfg.backend)
        self.opt = torch.optim.Adam(self.model.parameters(), lr=cfg.lr)
        self.sched = torch.optim.lr_scheduler.StepLR(self.opt, step_size=1, gamma=0.5)
        self.history: Dict[str, List[float]] = {"loss": [], "norm": []}

    def target(self) -> torch.Tensor:
        return torch.linspace(-1.0, 1.0, len(self.cfg.graph.depots), dtype=DTYPE)

    def epoch(self, index: int) -> Optional[float]:
        scores, pooled = self.step_fn()
        loss = F.mse_loss(scores, self.target())
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.sched.step()
        self.history["loss"].append(loss.item())
        self.history["norm"].append(pooled.norm().item())
        log.info("epoch %d loss %.4f lr %.5f", index, loss.item(), self.sched.get_last_lr()[0])
        return loss.item()

    def fit(self) -> Dict[str, List[float]]:
        log.info("%d nodes, %d edges", len(self.graph), self.graph.num_edges)
        for e in range(self.cfg.epochs):
            self.epoch(e)
        return self.history


def parse_args() -> RunConfig:
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--epochs", type=int, default=2)
    ap.add_argument("--lr", type=float, default=0.01)
    ap.add_argument("--seed", type=int, default=7)
    ns = ap.parse_args([])
    return RunConfig(epochs=ns.epochs, lr=ns.lr, seed=ns.seed)


if __name__ == "__main__":
    trainer = Trainer(parse_args())
    hist = trainer.fit()
    for key, values in hist.items():
        print(f"{key:>6s}: " + ", ".join(f"{v:.4f}" for v in values))
