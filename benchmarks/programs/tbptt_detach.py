# torch: 2.8.0
"""Truncated back-propagation through time for a two-layer recurrent forecaster.

Every `horizon` steps the hidden state is cut from the graph in place.  The cell
keeps a few statistics about which states still carry gradient, which we print in
the training log and which the memory planner (not in this file) relies upon.
"""
import contextlib
import math
import time
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import torch
import torch.nn as nn

HORIZON = 3
HIDDEN = 5
LAYERS = 2


class State(NamedTuple):
    hidden: torch.Tensor
    memory: torch.Tensor


class Stats:
    def __init__(self) -> None:
        self.live: List[int] = []
        self.cut: List[int] = []

    def __repr__(self) -> str:
        return f"Stats(live={self.live}, cut={self.cut})"


@contextlib.contextmanager
def stopwatch(label: str):
    start = time.perf_counter()
    try:
        yield
    finally:
        # not printed, would make the log differ from run to run
        _ = (label, time.perf_counter() - start)


def wave(length: int, batch: int) -> torch.Tensor:
    """A batch of sines with random phases, (time, batch, 1)"""
    t = torch.arange(length, dtype=torch.float32)
    phase = torch.rand(batch) * 2 * math.pi
    x = torch.sin(0.3 * t[:, None] + phase[None, :])
    return x.unsqueeze(-1)


class GateMixin:
    """Shared gate arithmetic"""

    def mix(self, gate: torch.Tensor, new: torch.Tensor, old: torch.Tensor) -> torch.Tensor:
        return gate * new + (1.0 - gate) * old


class LightCell(GateMixin, nn.Module):
    def __init__(self, in_dim: int, dim: int) -> None:
        super().__init__()
        self.inp = nn.Linear(in_dim, 2 * dim)
        self.rec = nn.Linear(dim, 2 * dim, bias=False)
        self.decay = nn.Parameter(torch.zeros(dim))

    def forward(self, x: torch.Tensor, state: State) -> State:
        pre = self.inp(x) + self.rec(state.hidden)
        gate, cand = pre.chunk(2, dim=-1)
        gate = torch.sigmoid(gate)
        hidden = self.mix(gate, torch.tanh(cand), state.hidden)
        memory = state.memory * torch.sigmoid(self.decay) + hidden
        return State(hidden, memory)


class Stack(nn.Module):
    def __init__(self, in_dim: int, dim: int, layers: int) -> None:
        super().__init__()
        dims = [in_dim] + [dim] * layers
        self.cells = nn.ModuleList(LightCell(a, dim) for a, _ in zip(dims, dims[1:]))
        self.norms = nn.ModuleDict({str(i): nn.LayerNorm(dim) for i in range(layers)})
        self.dim = dim

    def zero_state(self, batch: int) -> List[State]:
        z = torch.zeros(batch, self.dim)
        return [State(z.clone(), z.clone()) for _ in self.cells]

    def forward(self, x: torch.Tensor, states: List[State]) -> Tuple[torch.Tensor, List[State]]:
        out = []
        for i, (cell, st) in enumerate(zip(self.cells, states)):
            st = cell(x, st)
            out.append(st)
            x = self.norms[str(i)](st.hidden)
        return x, out


class Forecaster(nn.Module):
    def __init__(self, dim: int = HIDDEN, layers: int = LAYERS, horizon: int = HORIZON) -> None:
        super().__init__()
        self.stack = Stack(1, dim, layers)
        self.readout = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, 1))
        self.horizon = horizon
        self.leak = 0.98

    def truncate(self, states: List[State]) -> Tuple[List[State], List[bool]]:
        """Leaky copies of all states, cut from the past; says which are still attached."""
        fresh, flags = [], []
        for st in states:
            parts = []
            for part in st:
                part = part * self.leak
                part.detach_()
                flags.append(part.requires_grad)
                parts.append(part)
            fresh.append(State(*parts))
        return fresh, flags

    def forward(self, window: torch.Tensor, states: List[State]):
        preds = []
        flags: List[bool] = []
        for t in range(window.shape[0]):
            feat, states = self.stack(window[t], states)
            preds.append(self.readout(feat))
            if (t + 1) % self.horizon == 0:
                states, cut = self.truncate(states)
                flags = flags + cut
        return torch.stack(preds), states, flags


def clip(params, limit: float = 1.0) -> float:
    return float(nn.utils.clip_grad_norm_(list(params), limit))


def warmup(step: int, total: int = 4) -> float:
    return min(1.0, (step + 1) / total)


class Loop:
    def __init__(self, model: Forecaster, lr: float = 0.05) -> None:
        self.model = model
        self.fn = torch.compile(model, backend="eager")
        self.opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        self.sched = torch.optim.lr_scheduler.LambdaLR(self.opt, warmup)
        self.crit = nn.HuberLoss()
        self.stats = Stats()
        self.record: Dict[str, Any] = {}

    def one(self, series: torch.Tensor, states: Optional[List[State]]) -> List[State]:
        inputs, targets = series[:-1], series[1:]
        if states is None:
            states = self.model.stack.zero_state(series.shape[1])
        preds, states, flags = self.fn(inputs, states)
        loss = self.crit(preds, targets)
        self.opt.zero_grad()
        loss.backward()
        self.record["grad_norm"] = clip(self.model.parameters())
        self.opt.step()
        self.sched.step()
        self.stats.live.append(sum(flags))
        self.stats.cut.append(len(flags) - sum(flags))
        self.record["loss"] = loss.item()
        return states

    def run(self, steps: int) -> Stats:
        for s in range(steps):
            with stopwatch(f"step {s}"):
                self.one(wave(2 * HORIZON + 1, 2), None)
            print(f"step {s}: loss {self.record['loss']:.3f} |g| {self.record['grad_norm']:.3f}")
        return self.stats


def main() -> None:
    loop = Loop(Forecaster())
    stats = loop.run(2)
    print(stats)
    assert not any(stats.live), "some states survived the truncation"


if __name__ == "__main__":
    main()
