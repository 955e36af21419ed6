# torch: 2.13.0
"""A dynamic batching loop: requests arrive in bursts, a deadline queue feeds a
small model, and idle ticks are used to decay the running statistics."""
import argparse
import itertools
import logging
from collections import deque
from dataclasses import dataclass, field
from typing import Deque, Dict, Generator, List, Optional, Tuple

import torch
import torch.nn as nn

logger = logging.getLogger("queue")


@dataclass(order=True)
class Request:
    deadline: int
    ident: int
    scale: float = field(compare=False, default=1.0)

    def expired(self, now: int) -> bool:
        return now > self.deadline


@dataclass
class LoopConfig:
    ticks: int = 8
    per_tick: int = 2
    width: int = 4
    decay: float = 0.9
    backend: str = "eager"
    pattern: Tuple[int, ...] = (3, 1, 0, 2)


def arrivals(cfg: LoopConfig) -> Generator[List[Request], None, None]:
    counter = itertools.count()
    for tick, burst in zip(range(cfg.ticks), itertools.cycle(cfg.pattern)):
        yield [
            Request(deadline=tick + 2 + n, ident=next(counter), scale=1.0 + 0.5 * n)
            for n in range(burst)
        ]


class Scorer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.proj = nn.Linear(width, width, bias=False)
        self.norm = nn.LayerNorm(width)
        self.register_buffer("ticks", torch.zeros((), dtype=torch.long))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.proj(x)).tanh()


class QueueStats:
    def __init__(self) -> None:
        self.depths: List[int] = []
        self.expired: List[int] = []
        self.served: Dict[int, int] = {}

    def sample(self, depth: int) -> None:
        self.depths.append(depth)

    def serve(self, ident: int, tick: int) -> None:
        self.served[ident] = tick

    def latency(self, born: Dict[int, int]) -> float:
        waits = [t - born[i] for i, t in self.served.items()]
        return sum(waits) / max(len(waits), 1)


class Batcher:
    """Takes at most `per_tick` scales off the work list.  An empty list simply
    ends the batch early."""

    def __init__(self, cfg: LoopConfig, model: Scorer) -> None:
        self.cfg = cfg
        self.model = model

    def drain(self, state: torch.Tensor, pending: Deque[float]) -> Tuple[torch.Tensor, int]:
        taken = 0
        try:
            for _ in range(self.cfg.per_tick):
                scale = pending.popleft()
                state = state + scale * self.model(state)
                taken += 1
        except IndexError:
            state = state * self.cfg.decay
        return state, taken


class Loop:
    def __init__(self, cfg: LoopConfig) -> None:
        self.cfg = cfg
        self.model = Scorer(cfg.width).eval()
        self.batcher = Batcher(cfg, self.model)
        self.drain = torch.compile(self.batcher.drain, backend=cfg.backend)
        self.stats = QueueStats()
        self.waiting: List[Request] = []
        self.born: Dict[int, int] = {}

    def admit(self, tick: int, burst: List[Request]) -> None:
        for req in burst:
            self.born[req.ident] = tick
        self.waiting.extend(burst)
        self.waiting.sort()
        late = [r for r in self.waiting if r.expired(tick)]
        for req in late:
            self.waiting.remove(req)
            self.stats.expired.append(req.ident)

    def tick(self, tick: int, burst: List[Request], state: torch.Tensor) -> torch.Tensor:
        self.admit(tick, burst)
        pending = deque(r.scale for r in self.waiting)
        state, taken = self.drain(state, pending)
        for req in self.waiting[:taken]:
            self.stats.serve(req.ident, tick)
        del self.waiting[:taken]
        self.stats.sample(len(self.waiting))
        return state

    def run(self, initial: Optional[torch.Tensor] = None) -> torch.Tensor:
        state = torch.ones(self.cfg.width) if initial is None else initial
        with torch.no_grad():
            for tick, burst in enumerate(arrivals(self.cfg)):
                state = self.tick(tick, burst, state)
                logger.info("tick %d depth %d", tick, self.stats.depths[-1])
                print(tick, len(burst), [round(v, 4) for v in state.tolist()])
        return state


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ticks", type=int, default=8)
    parser.add_argument("--per-tick", type=int, default=2)
    parser.add_argument("-v", action="store_true")
    ns = parser.parse_args()
    logging.basicConfig(level=logging.INFO if ns.v else logging.ERROR)
    torch.manual_seed(21)
    loop = Loop(LoopConfig(ticks=ns.ticks, per_tick=ns.per_tick))
    final = loop.run()
    print("served", len(loop.stats.served), "expired", loop.stats.expired)
    print("mean latency", round(loop.stats.latency(loop.born), 3))
    print("final norm", round(float(final.norm()), 4))


if __name__ == "__main__":
    main()
