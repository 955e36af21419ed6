"""Scan sensor streams for the first window that looks like an alarm."""
import dataclasses
import logging
from typing import Iterator, List

import torch
from torch import nn

logging.basicConfig(level=logging.WARNING)
log = logging.getLogger("telemetry")


@dataclasses.dataclass
class StreamConfig:
    name: str
    channels: int = 4
    window: int = 8
    threshold: float = 0.75
    windows: int = 6


class ChannelPool:
    """Counts which streams are open; a stream must be released exactly once."""

    def __init__(self) -> None:
        self.opened: List[str] = []
        self.released: List[str] = []

    @property
    def balanced(self) -> bool:
        return len(self.opened) == len(self.released)


POOL = ChannelPool()


def windows(signal: torch.Tensor, cfg: StreamConfig) -> Iterator[torch.Tensor]:
    POOL.opened.append(cfg.name)
    try:
        for start in range(0, cfg.window * cfg.windows, cfg.window):
            yield signal[:, start:start + cfg.window]
    finally:
        POOL.released.append(cfg.name)


class WindowScorer(nn.Module):
    def __init__(self, cfg: StreamConfig) -> None:
        super().__init__()
        self.cfg = cfg
        self.mix = nn.Linear(cfg.window, cfg.window, bias=False)
        self.gain = nn.Parameter(torch.ones(cfg.channels))

    def score(self, window: torch.Tensor) -> torch.Tensor:
        hidden = torch.tanh(self.mix(window))
        return (hidden.abs().mean(dim=1) * self.gain).sum()


class FirstWindow(nn.Module):
    """Scores only the leading windows of the stream."""

    def __init__(self, scorer: WindowScorer, limit: int = 2) -> None:
        super().__init__()
        self.scorer = scorer
        self.limit = limit

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        total = signal.new_zeros(())
        seen = 0
        for window in windows(signal, self.scorer.cfg):
            total = total + self.scorer.score(window)
            seen += 1
            if seen >= self.limit:
                break
        return total / seen


def build(name: str) -> FirstWindow:
    cfg = StreamConfig(name=name)
    return FirstWindow(WindowScorer(cfg))


def make_signal(cfg: StreamConfig) -> torch.Tensor:
    t = torch.linspace(0.0, 6.28, cfg.window * cfg.windows)
    return torch.stack([torch.sin(t * (c + 1)) for c in range(cfg.channels)])


def main() -> None:
    torch.manual_seed(0)
    model = build("boiler")
    signal = make_signal(model.scorer.cfg)

    reference = model(signal)
    log.info("eager score %.4f", reference.item())
    assert POOL.balanced, "eager left a stream open"

    compiled = torch.compile(model, backend="eager")
    score = compiled(signal)
    torch.testing.assert_close(score, reference)
    log.info("opened=%s released=%s", POOL.opened, POOL.released)
    assert POOL.balanced, f"compiled left streams open: {POOL.opened} vs {POOL.released}"
    print("all streams released")


main()
