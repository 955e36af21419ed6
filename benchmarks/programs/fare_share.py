# torch: 2.8.0
"""Regression of taxi fares with a robust loss. Shares and rates are logged per step by a mixin of the trainer."""
import copy
import enum
import json
import os
import typing
from abc import ABCMeta, abstractmethod
from itertools import islice

import torch
import torch.optim as optim
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split


class Zone(enum.Enum):
    CENTER = 0
    RING = 1
    AIRPORT = 2

    @property
    def base(self) -> float:
        return {Zone.CENTER: 3.0, Zone.RING: 2.5, Zone.AIRPORT: 9.0}[self]


class Trips(Dataset):
    def __init__(self, count: int, seed: int = 0) -> None:
        gen = torch.Generator().manual_seed(seed)
        self.km = torch.rand(count, generator=gen) * 12
        self.minutes = self.km * 2.5 + torch.rand(count, generator=gen) * 8
        self.zone = torch.randint(0, 3, (count,), generator=gen)

    def __len__(self) -> int:
        return self.km.numel()

    def __getitem__(self, i):
        zone = Zone(int(self.zone[i]))
        features = torch.stack([self.km[i], self.minutes[i], torch.tensor(float(zone.value))])
        fare = zone.base + 1.4 * self.km[i] + 0.3 * self.minutes[i]
        return features, fare


class RatesMixin:
    """Rates of whatever a step counts. A rate of nothing is reported as zero, not as an error."""

    counted: typing.ClassVar[typing.Tuple[str, ...]] = ("clipped", "late")

    def rate(self, part: int, whole: int) -> int:
        try:
            return part * 100 // whole
        except ZeroDivisionError:
            return 0

    def rates(self, parts: typing.Sequence[int], whole: int) -> typing.List[int]:
        return [self.rate(part, whole) for part in parts]


class Robust(nn.Module, RatesMixin):
    def __init__(self, delta: float = 2.0, airport: float = 1.5) -> None:
        super().__init__()
        self.delta = delta
        self.register_buffer("weights", torch.tensor([1.0, 1.0, airport]))

    def forward(self, guess, fare, zone, late: typing.Tuple[int, ...]):
        error = guess - fare
        weight = self.weights[zone]
        small = error.abs() < self.delta
        quadratic = 0.5 * error.square()
        linear = self.delta * (error.abs() - 0.5 * self.delta)
        loss = (torch.where(small, quadratic, linear) * weight).mean()
        share = self.rate(sum(late), len(late))
        return loss * (1 + share / 1000), share


class Base(metaclass=ABCMeta):
    def __init__(self, model: nn.Module, rate: float) -> None:
        self.model = model
        self.optimizer = optim.AdamW(model.parameters(), lr=rate)
        self.scheduler = optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 10)
        self.best = None

    @abstractmethod
    def step(self, batch) -> float: ...

    def fit(self, loader, most: int) -> typing.List[float]:
        seen = []
        for batch in islice(loader, most):
            self.optimizer.zero_grad(set_to_none=True)
            seen.append(self.step(batch))
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.scheduler.step()
            if self.best is None or seen[-1] <= min(seen):
                self.best = copy.deepcopy(self.model.state_dict())
        return seen


class Network(nn.Module):
    def __init__(self, hidden: int = 6) -> None:
        super().__init__()
        self.scale = nn.BatchNorm1d(3)
        self.tower = nn.Sequential(nn.Linear(3, hidden), nn.GELU(), nn.Dropout(0.0), nn.Linear(hidden, hidden))
        self.skip = nn.Linear(3, hidden, bias=False)
        self.out = nn.Linear(hidden, 1)

    def forward(self, features):
        h = self.scale(features)
        return self.out(torch.tanh(self.tower(h) + self.skip(h))).squeeze(-1)


class Trainer(RatesMixin, Base):
    def __init__(self, model, loss, rate=1e-2):
        super().__init__(model, rate)
        self.loss = torch.compile(loss, backend="eager")
        self.shares = []

    def late(self, features, fare):
        slow = features[:, 1] > 3 * features[:, 0] + 6
        return tuple(int(item) for item in slow if item)

    def step(self, batch):
        features, fare = batch
        guess = self.model(features)
        loss, share = self.loss(guess, fare, features[:, 2].long(), self.late(features, fare))
        loss.backward()
        self.shares.append(share)
        return loss.item()


def run(epochs=int(os.environ.get("EPOCHS", "1"))):
    torch.manual_seed(7)
    trips = Trips(20)
    train, held = random_split(trips, [16, 4])
    trainer = Trainer(Network(), Robust())
    for _ in range(epochs):
        losses = trainer.fit(DataLoader(train, batch_size=4), 3)
    with torch.no_grad():
        features, fares = next(iter(DataLoader(held, batch_size=4)))
        error = (trainer.model.eval()(features) - fares).abs().mean()
    print(json.dumps({"losses": len(losses), "shares": trainer.shares, "finite": bool(error.isfinite())}))


if __name__ == "__main__":
    run()
