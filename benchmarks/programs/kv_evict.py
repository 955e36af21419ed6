# torch: 2.8.0
"""Toy serving loop: pages of a key-value cache are kept for the most recent prompts and evicted in order of use.

Requests arrive in waves. A wave shares one page table, which the decode step brings up to date, so that the step that
runs compiled also returns how many pages are resident.
"""
from __future__ import annotations

import heapq
import itertools
import logging
import random
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Callable, Iterable, Iterator, NamedTuple, Protocol

import torch
from torch.nn import functional as F

log = logging.getLogger("serving")


class Page(NamedTuple):
    owner: int
    slot: int
    hot: bool = False


@dataclass
class Request:
    ident: int
    tokens: list[int]
    priority: float = 1.0
    produced: list[int] = field(default_factory=list)

    def __lt__(self, other: "Request") -> bool:
        return self.priority < other.priority

    @property
    def done(self) -> bool:
        return len(self.produced) >= 3


class Policy(Protocol):
    def touch(self, table: OrderedDict, key: str) -> None: ...


class Recency:
    """Plain least-recently-used: what is touched moves to the end."""

    def touch(self, table: OrderedDict, key: str) -> None:
        if key in table:
            table.move_to_end(key)


class Pinned(Recency):
    """System prompts stay at the front, where a scan of the table starts."""

    def __init__(self, prefixes: Iterable[str]) -> None:
        self.prefixes = tuple(prefixes)

    def touch(self, table: OrderedDict, key: str) -> None:
        if key.startswith(self.prefixes):
            table.move_to_end(key, last=False)
        else:
            super().touch(table, key)


@dataclass
class Weights:
    embed: torch.Tensor
    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    out: torch.Tensor

    @classmethod
    def draw(cls, vocabulary: int, width: int, seed: int = 11) -> "Weights":
        generator = torch.Generator().manual_seed(seed)

        def normal(*size: int) -> torch.Tensor:
            return torch.randn(*size, generator=generator) / size[-1] ** 0.5

        return cls(normal(vocabulary, width), *(normal(width, width) for _ in range(3)), normal(width, vocabulary))


def attend(weights: Weights, history: torch.Tensor, last: torch.Tensor) -> torch.Tensor:
    q = last @ weights.query
    k, v = history @ weights.key, history @ weights.value
    score = (k @ q) / k.shape[-1] ** 0.5
    return torch.softmax(score, 0) @ v


def make_step(weights: Weights, policy: Policy, capacity: int) -> Callable:
    def step(history: torch.Tensor, last: torch.Tensor, keys: tuple[str, ...]):
        table: OrderedDict[str, Page] = OrderedDict()
        for number, key in enumerate(keys):
            table[key] = Page(number, number % capacity)
            policy.touch(table, key)
        while len(table) > capacity:
            table.popitem()
        mixed = attend(weights, history, last)
        logits = F.rms_norm(mixed, mixed.shape[-1:]) @ weights.out
        return logits, len(table)

    return torch.compile(step, backend="eager")


class Queue:
    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Request]] = []
        self._count = itertools.count()

    def push(self, request: Request) -> None:
        heapq.heappush(self._heap, (-request.priority, next(self._count), request))

    def wave(self, most: int) -> Iterator[Request]:
        while self._heap and most:
            yield heapq.heappop(self._heap)[2]
            most -= 1

    def __bool__(self) -> bool:
        return bool(self._heap)


@dataclass
class Engine:
    weights: Weights
    step: Callable
    resident: list[int] = field(default_factory=list)

    def names(self, wave: list[Request]) -> tuple[str, ...]:
        return ("sys.0", *(f"user.{request.ident}" for request in wave))

    def serve(self, queue: Queue) -> int:
        finished = 0
        while queue:
            wave = list(queue.wave(2))
            for request in wave:
                history = self.weights.embed[request.tokens + request.produced]
                logits, pages = self.step(history, history[-1], self.names(wave))
                self.resident.append(pages)
                request.produced.append(int(logits.argmax()))
                if request.done:
                    finished += 1
                    log.info("request %d done: %s", request.ident, request.produced)
                else:
                    queue.push(request)
        return finished


def main() -> None:
    logging.basicConfig(level=logging.WARNING)
    rng = random.Random(4)
    weights = Weights.draw(17, 8)
    engine = Engine(weights, make_step(weights, Pinned(["sys."]), capacity=4))
    queue = Queue()
    for ident in range(3):
        queue.push(Request(ident, [rng.randrange(17) for _ in range(4)], priority=rng.random()))
    with torch.inference_mode():
        finished = engine.serve(queue)
    print(f"{finished} requests, mean pages {sum(engine.resident) / len(engine.resident):.2f}")


main()
