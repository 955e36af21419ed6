# torch: 2.8.0
"""
Hyper-parameter sweep over activations for a small physics surrogate.

Settings which the model refuses (there are some in the grid, on purpose) must end up
in the table as "rejected", so that the sweep goes on with the others.
"""
import argparse
import enum
import itertools
import json
import math
import warnings
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from typing import Any, Dict, Iterator, List, Mapping, Optional, Union

import torch
import torch.nn.functional as F
from torch import nn

warnings.filterwarnings("ignore", category=UserWarning)

BACKEND = "aot_eager_decomp_partition"
Number = Union[int, float]


class Verdict(enum.Enum):
    OK = "ok"
    REJECTED = "rejected"
    DIVERGED = "diverged"


@dataclass(frozen=True)
class Trial:
    activation: str = "celu"
    alpha: float = 1.0
    width: int = 6
    lr: float = 0.02
    steps: int = 2

    @property
    def name(self) -> str:
        return f"{self.activation}(alpha={self.alpha:g})/w{self.width}"

    def as_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)


def grid(base: Trial, **axes: List[Any]) -> Iterator[Trial]:
    """Product of all axes, on top of `base`"""
    keys = list(axes)
    for values in itertools.product(*axes.values()):
        yield replace(base, **dict(zip(keys, values)))


class Activation(nn.Module):
    """Looks the function up by name, binds alpha."""

    def __init__(self, name: str, alpha: Number) -> None:
        super().__init__()
        self.name = name
        self.alpha = alpha

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.name == "celu":
            return torch.celu(x, self.alpha)
        if self.name == "elu":
            return F.elu(x, alpha=self.alpha)
        if self.name == "leaky":
            return F.leaky_relu(x, negative_slope=self.alpha)
        raise NotImplementedError(self.name)

    def extra_repr(self) -> str:
        return f"{self.name}, alpha={self.alpha}"


class Fourier(nn.Module):
    def __init__(self, bands: int) -> None:
        super().__init__()
        self.register_buffer("freq", 2.0 ** torch.arange(bands) * math.pi, persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        angle = x * self.freq
        return torch.cat([x, angle.sin(), angle.cos()], dim=-1)

    @cached_property
    def out_features(self) -> int:
        return 1 + 2 * self.freq.numel()


class Surrogate(nn.Module):
    def __init__(self, trial: Trial, bands: int = 2) -> None:
        super().__init__()
        self.lift = Fourier(bands)
        act = partial(Activation, trial.activation, trial.alpha)
        self.net = nn.Sequential(
            nn.Linear(self.lift.out_features, trial.width),
            act(),
            nn.Linear(trial.width, trial.width),
            act(),
        )
        self.out = nn.Linear(trial.width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.net(self.lift(x)))


def heat(x: torch.Tensor, t: float = 0.1) -> torch.Tensor:
    """Two modes of the heat equation on [0, 1]"""
    one = torch.sin(math.pi * x) * math.exp(-math.pi ** 2 * t)
    two = 0.5 * torch.sin(3 * math.pi * x) * math.exp(-9 * math.pi ** 2 * t)
    return one + two


class EarlyStop:
    def __init__(self, patience: int = 3) -> None:
        self.best: Optional[float] = None
        self.bad = 0
        self.patience = patience

    def __call__(self, value: float) -> bool:
        if self.best is None or value < self.best:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        return self.bad >= self.patience


def fit(trial: Trial) -> float:
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = Surrogate(trial)
    fn = torch.compile(model, backend=BACKEND)
    opt = torch.optim.Adam(model.parameters(), lr=trial.lr)
    stop = EarlyStop()
    loss = torch.tensor(float("nan"))
    for _ in range(trial.steps):
        x = torch.rand(8, 1)
        loss = F.mse_loss(fn(x), heat(x))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if stop(loss.item()):
            break
    return loss.item()


def judge(trial: Trial) -> Mapping[str, Any]:
    row: Dict[str, Any] = {"name": trial.name}
    try:
        score = fit(trial)
    except RuntimeError as err:
        row["verdict"] = Verdict.REJECTED
        row["why"] = str(err).splitlines()[0][:60]
        return row
    row["score"] = score
    row["verdict"] = Verdict.OK if math.isfinite(score) else Verdict.DIVERGED
    return row


def show(rows: List[Mapping[str, Any]]) -> None:
    width = max(len(r["name"]) for r in rows)
    for r in rows:
        tail = f"{r['score']:.5f}" if "score" in r else r.get("why", "")
        print(f"{r['name']:<{width}}  {r['verdict'].value:<9} {tail}")


def main() -> None:
    ap = argparse.ArgumentParser()
    ap.add_argument("--width", type=int, default=6)
    opts = ap.parse_args([])
    base = Trial(width=opts.width)
    rows = [judge(t) for t in grid(base, activation=["leaky", "celu"], alpha=[0.0, 0.5])]
    show(rows)
    rejected = sum(r["verdict"] is Verdict.REJECTED for r in rows)
    print(f"{len(rows)} trials, {rejected} rejected")


if __name__ == "__main__":
    main()
