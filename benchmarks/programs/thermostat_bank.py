# torch: 2.8.0
"""Simulates a bank of rooms with thermostats.  Controls are small objects with
validated attributes, created per simulation step from a shared template."""
import argparse
import collections
import logging
import textwrap
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Optional, Tuple

import torch
import torch.nn as nn

logger = logging.getLogger("thermo")


class Event(str):
    """A tagged string for the event log."""

    @property
    def kind(self) -> str:
        return self.split(":", 1)[0]


@dataclass
class RoomConfig:
    names: Tuple[str, ...] = ("hall", "study", "attic")
    outside: float = 4.0
    leak: Tuple[float, ...] = (0.05, 0.08, 0.15)
    start: float = 16.0
    steps: int = 6
    max_gain: float = 2.0
    seed: int = 2
    tags: Dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.names) != len(self.leak):
            raise ValueError("names and leak differ in length")


class Control:
    """Heating control.  `gain` is limited to the range the hardware accepts and
    is stored in tenths, like the wire protocol does."""

    max_gain = 2.0

    def __init__(self, setpoint: float, gain: float = 0.5) -> None:
        self.setpoint = setpoint
        self._gain = gain * 10.0

    @property
    def gain(self) -> float:
        return self._gain / 10.0

    @gain.setter
    def gain(self, value: float) -> None:
        self._gain = min(max(value, 0.0), self.max_gain) * 10.0

    def power(self, temperature: torch.Tensor) -> torch.Tensor:
        return self.gain * torch.relu(self.setpoint - temperature)


class Envelope(nn.Module):
    """Heat exchange with the outside and between neighbouring rooms."""

    def __init__(self, cfg: RoomConfig) -> None:
        super().__init__()
        self.register_buffer("leak", torch.tensor(cfg.leak))
        self.outside = cfg.outside
        n = len(cfg.names)
        mix = torch.zeros(n, n)
        for i in range(n - 1):
            mix[i, i + 1] = mix[i + 1, i] = 0.02
        self.register_buffer("mix", mix)

    def forward(self, temperature: torch.Tensor) -> torch.Tensor:
        loss = self.leak * (self.outside - temperature)
        exchange = self.mix @ temperature - self.mix.sum(1) * temperature
        return loss + exchange


class House(nn.Module):
    def __init__(self, cfg: RoomConfig) -> None:
        super().__init__()
        self.cfg = cfg
        self.envelope = Envelope(cfg)
        self.register_buffer("capacity", torch.linspace(4.0, 6.0, len(cfg.names)))

    def forward(self, temperature: torch.Tensor, setpoint: float, boost: float) -> torch.Tensor:
        control = Control(setpoint)
        control.gain = control.gain + boost
        heat = control.power(temperature)
        delta = (heat / self.capacity) + self.envelope(temperature)
        return temperature + delta


class Schedule:
    """Yields (setpoint, boost) pairs: a morning boost, then normal operation."""

    def __init__(self, day: float, night: float, boost_steps: int) -> None:
        self.day, self.night, self.boost_steps = day, night, boost_steps

    def __iter__(self) -> Iterator[Tuple[float, float]]:
        for _ in range(self.boost_steps):
            yield self.day, 3.5
        while True:
            yield self.night, 0.25


class Simulation:
    def __init__(self, cfg: RoomConfig, backend: str) -> None:
        self.cfg = cfg
        self.house = House(cfg).eval()
        self.step = torch.compile(self.house, backend=backend)
        self.events: List[Event] = []
        self.history: List[torch.Tensor] = []

    def note(self, kind: str, text: str) -> None:
        self.events.append(Event(f"{kind}:{text}"))

    @torch.no_grad()
    def run(self, schedule: Schedule) -> torch.Tensor:
        temperature = torch.full((len(self.cfg.names),), self.cfg.start)
        noise = torch.Generator().manual_seed(self.cfg.seed)
        for k, (setpoint, boost) in zip(range(self.cfg.steps), schedule):
            temperature = temperature + 0.05 * torch.randn(len(temperature), generator=noise)
            temperature = self.step(temperature, setpoint, boost)
            self.history.append(temperature.clone())
            hottest: Optional[int] = int(temperature.argmax())
            self.note("step", f"{k} {self.cfg.names[hottest]} {float(temperature.max()):.3f}")
            if float(temperature.max()) > setpoint + 1.5:
                self.note("overshoot", self.cfg.names[hottest])
        return temperature

    def report(self) -> str:
        kinds = collections.Counter(e.kind for e in self.events)
        body = "\n".join(self.events)
        return textwrap.indent(body, "  ") + f"\n  {dict(kinds)}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--backend", default="eager")
    args = parser.parse_args()
    torch.manual_seed(0)
    cfg = RoomConfig(steps=args.steps, tags={"site": "demo"})
    sim = Simulation(cfg, args.backend)
    final = sim.run(Schedule(day=21.0, night=18.0, boost_steps=2))
    print(sim.report())
    print("final", {n: round(float(t), 3) for n, t in zip(cfg.names, final)})
    overshoots = [e for e in sim.events if e.kind == "overshoot"]
    peak = max(float(t.max()) for t in sim.history)
    print("overshoots", len(overshoots), "peak", round(peak, 3))


if __name__ == "__main__":
    main()
