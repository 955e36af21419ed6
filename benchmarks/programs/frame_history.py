# torch: 2.13.0
"""Streaming controller: keeps the last few sensor frames in a preallocated
history buffer and predicts the next command from them."""
import argparse
import logging
import math
from dataclasses import dataclass, field
from typing import Dict, Iterator, List, Optional

import torch
import torch.nn as nn
import torch.nn.functional as F

logger = logging.getLogger("frame_history")


@dataclass
class StreamConfig:
    depth: int = 12
    channels: int = 3
    hidden: int = 8
    decay: float = 0.8
    steps: int = 15
    warm_start: float = 0.25
    seed: int = 7
    clip: Optional[float] = 5.0
    labels: List[str] = field(default_factory=lambda: ["roll", "pitch", "yaw"])

    def validate(self) -> "StreamConfig":
        if self.depth < 2:
            raise ValueError("depth must be at least 2")
        if len(self.labels) != self.channels:
            raise ValueError("one label per channel please")
        return self


def sensor_stream(cfg: StreamConfig) -> Iterator[torch.Tensor]:
    """A deterministic signal: a few sinusoids, one per channel."""
    for t in range(cfg.steps):
        values = [math.sin(0.3 * t + c) + 0.1 * c for c in range(cfg.channels)]
        yield torch.tensor(values)


class RunningScale:
    """Keeps an exponential moving average of the absolute value."""

    def __init__(self, channels: int, decay: float) -> None:
        self.decay = decay
        self.value = torch.ones(channels)

    def update(self, frame: torch.Tensor) -> torch.Tensor:
        self.value = self.decay * self.value + (1 - self.decay) * frame.abs()
        return frame / self.value.clamp_min(1e-3)


class History(nn.Module):
    """Newest frame first.  `advance` makes room, `put` fills slot zero."""

    def __init__(self, cfg: StreamConfig) -> None:
        super().__init__()
        self.register_buffer("frames", torch.full((cfg.depth, cfg.channels), cfg.warm_start))
        self.register_buffer("age", torch.zeros(cfg.depth))
        self.filled = 0

    def advance(self) -> None:
        keep = self.frames[:-1].clone()
        self.frames[1:].copy_(keep)
        self.age.add_(1.0)

    def put(self, frame: torch.Tensor) -> None:
        self.frames[0] = frame
        self.age[0] = 0.0
        self.filled = min(self.filled + 1, self.frames.shape[0])

    def spread(self) -> torch.Tensor:
        live = self.frames[: max(self.filled, 1)]
        return live.amax(0) - live.amin(0)


class Predictor(nn.Module):
    def __init__(self, cfg: StreamConfig) -> None:
        super().__init__()
        self.cfg = cfg
        self.mix = nn.Linear(cfg.depth * cfg.channels, cfg.hidden)
        self.head = nn.Linear(cfg.hidden, cfg.channels)
        weights = torch.tensor([cfg.decay ** i for i in range(cfg.depth)])
        self.register_buffer("weights", weights / weights.sum())

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        weighted = frames * self.weights[:, None]
        hidden = torch.tanh(self.mix(weighted.flatten()))
        out = self.head(F.relu(hidden)) + weighted.sum(0)
        if self.cfg.clip is not None:
            out = out.clamp(-self.cfg.clip, self.cfg.clip)
        return out


class Controller:
    def __init__(self, cfg: StreamConfig, backend: str) -> None:
        self.cfg = cfg
        self.scale = RunningScale(cfg.channels, cfg.decay)
        self.history = History(cfg)
        self.predictor = Predictor(cfg).eval()
        self.advance = torch.compile(self.history.advance, backend=backend)
        self.trace: List[Dict[str, float]] = []

    @torch.no_grad()
    def step(self, frame: torch.Tensor) -> torch.Tensor:
        scaled = self.scale.update(frame)
        self.advance()
        self.history.put(scaled)
        command = self.predictor(self.history.frames)
        self.trace.append({name: float(v) for name, v in zip(self.cfg.labels, command)})
        return command

    def reference_history(self, frames: List[torch.Tensor]) -> torch.Tensor:
        """What the buffer should hold, rebuilt from the raw frames."""
        scale = RunningScale(self.cfg.channels, self.cfg.decay)
        scaled = [scale.update(f) for f in frames][::-1][: self.cfg.depth]
        missing = self.cfg.depth - len(scaled)
        pad = [torch.full((self.cfg.channels,), self.cfg.warm_start)] * missing
        return torch.stack(scaled + pad)


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--depth", type=int, default=12)
    parser.add_argument("--backend", default="inductor")
    parser.add_argument("--verbose", action="store_true")
    return parser.parse_args()


def main() -> None:
    args = parse_args()
    logging.basicConfig(level=logging.INFO if args.verbose else logging.WARNING)
    cfg = StreamConfig(depth=args.depth, steps=args.steps).validate()
    torch.manual_seed(cfg.seed)
    controller = Controller(cfg, args.backend)
    seen: List[torch.Tensor] = []
    for t, frame in enumerate(sensor_stream(cfg)):
        seen.append(frame)
        command = controller.step(frame)
        logger.info("step %d command %s", t, [round(v, 4) for v in command.tolist()])
    print("spread", [round(v, 4) for v in controller.history.spread().tolist()])
    print("last", {k: round(v, 4) for k, v in controller.trace[-1].items()})
    expected = controller.reference_history(seen)
    torch.testing.assert_close(controller.history.frames, expected)
    print("history consistent after", len(seen), "frames")


if __name__ == "__main__":
    main()
