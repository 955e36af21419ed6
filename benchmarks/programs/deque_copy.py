# torch: 2.13.0
"""Windowed anomaly monitor for sensor streams (replay + forecasting)."""
import collections
from dataclasses import dataclass, field
from typing import Deque, Dict, List

import torch
from torch import nn


@dataclass
class MonitorConfig:
    sensors: List[str] = field(default_factory=lambda: ["temp", "pressure"])
    window: int = 4
    horizon: int = 3
    hidden: int = 8
    threshold: float = 0.75
    backend: str = "eager"


class SensorState:
    """Recent summary statistics of a single sensor."""

    def __init__(self, name: str, window: int):
        self.name = name
        self.history: Deque[float] = collections.deque([0.0] * window, maxlen=window)
        self.alarms = 0

    def observe(self, value: float):
        self.history.append(value)
        if value > 1.5:
            self.alarms += 1

    def snapshot(self) -> Deque[float]:
        return self.history.copy()

    def spread(self) -> float:
        return max(self.history) - min(self.history)


class Scaler(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.register_buffer("shift", torch.zeros(n))
        self.register_buffer("scale", torch.ones(n) * 0.5)

    def forward(self, x):
        return (x - self.shift) * self.scale


class Forecaster(nn.Module):
    def __init__(self, cfg: MonitorConfig):
        super().__init__()
        self.cfg = cfg
        self.scaler = Scaler(cfg.window)
        self.body = nn.Sequential(
            nn.Linear(cfg.window, cfg.hidden),
            nn.Tanh(),
            nn.Linear(cfg.hidden, cfg.window),
        )

    def weights_for(self, recent):
        total = 0.0
        for age, value in enumerate(reversed(recent)):
            total += value / (1 + age)
        return total / max(len(recent), 1)

    def rollout(self, x, state: SensorState):
        recent = state.snapshot()
        outputs = []
        for step in range(self.cfg.horizon):
            gain = self.weights_for(recent)
            x = x + self.body(self.scaler(x)) * gain
            outputs.append(x.mean())
            recent.append(1.5 * (step + 1))
        return torch.stack(outputs)

    def forward(self, x, states: Dict[str, SensorState]):
        out = {}
        for i, name in enumerate(self.cfg.sensors):
            out[name] = self.rollout(x[i], states[name])
        return out


def make_states(cfg):
    states = {}
    for k, name in enumerate(cfg.sensors):
        st = SensorState(name, cfg.window)
        for i in range(6):
            st.observe(0.5 * i * (k + 1) % 2.0)
        states[name] = st
    return states


def report(title, forecasts, cfg):
    print(title)
    for name, f in forecasts.items():
        flag = "ALARM" if f.abs().max().item() > cfg.threshold else "ok"
        print(f"  {name:<10} {[round(v, 4) for v in f.tolist()]} {flag}")


def main():
    torch.manual_seed(7)
    cfg = MonitorConfig()
    model = Forecaster(cfg).eval()
    x = torch.randn(len(cfg.sensors), cfg.window)
    with torch.no_grad():
        ref = model(x, make_states(cfg))
        got = torch.compile(model, backend=cfg.backend)(x, make_states(cfg))
    report("reference", ref, cfg)
    report("compiled", got, cfg)
    for name in cfg.sensors:
        torch.testing.assert_close(got[name], ref[name])
    print("forecasts agree")


if __name__ == "__main__":
    main()
