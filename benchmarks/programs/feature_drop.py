# torch: 2.8.0
"""Tabular regression with feature groups that can be switched off ("ablation").

Which groups are alive is decided inside forward() from the ablation plan, as in the
internal framework this was cut from: a plan is a list of (operator, names) pairs
which are applied in order to the set of names.
"""
import abc
import operator
from dataclasses import dataclass
from typing import Callable, Dict, Generic, Iterable, Iterator, List, Set, Tuple, TypeVar

import torch
from torch import Tensor, nn

T = TypeVar("T")
Op = Callable[[Set[str], Set[str]], Set[str]]
DEVICE = "cpu"


class Registry(Generic[T]):
    def __init__(self) -> None:
        self._items: Dict[str, T] = {}

    def add(self, name: str) -> Callable[[T], T]:
        def inner(item: T) -> T:
            if name in self._items:
                raise ValueError(f"{name} twice")
            self._items[name] = item
            return item

        return inner

    def __getitem__(self, name: str) -> T:
        return self._items[name]

    def names(self) -> List[str]:
        return sorted(self._items)

    def __iter__(self) -> Iterator[T]:
        return iter(self._items[n] for n in self.names())


GROUPS: Registry[type] = Registry()


class Group(nn.Module, abc.ABC):
    """One group of raw columns -> `out` features"""

    columns: slice
    out: int = 2

    @abc.abstractmethod
    def encode(self, raw: Tensor) -> Tensor:
        ...

    def forward(self, raw: Tensor) -> Tensor:
        return self.encode(raw[:, self.columns])


class LinearGroup(Group):
    def __init__(self) -> None:
        super().__init__()
        width = self.columns.stop - self.columns.start
        self.lin = nn.Linear(width, self.out)

    def encode(self, raw: Tensor) -> Tensor:
        return self.lin(raw)


@GROUPS.add("price")
class Price(LinearGroup):
    columns = slice(0, 2)

    def encode(self, raw: Tensor) -> Tensor:
        return super().encode(torch.log1p(raw.abs()))


@GROUPS.add("volume")
class Volume(LinearGroup):
    columns = slice(2, 5)


@GROUPS.add("calendar")
class Calendar(Group):
    columns = slice(5, 6)

    def encode(self, raw: Tensor) -> Tensor:
        return torch.cat([raw.sin(), raw.cos()], dim=-1)


@GROUPS.add("noise")
class Noise(Group):
    """Only there to see whether the ablation finds it"""

    columns = slice(6, 8)

    def encode(self, raw: Tensor) -> Tensor:
        return raw * 5.0


@dataclass(frozen=True)
class Step:
    op: Op
    names: Tuple[str, ...]


@dataclass
class Plan:
    steps: List[Step]
    lr: float = 0.05
    epochs: int = 2

    def apply(self, alive: Set[str]) -> Set[str]:
        for step in self.steps:
            step.op(alive, set(step.names))
        return alive

    @classmethod
    def without(cls, *names: str) -> "Plan":
        return cls([Step(operator.isub, names)])


class Tabular(nn.Module):
    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.plan = plan
        self.groups = nn.ModuleDict({n: GROUPS[n]() for n in GROUPS.names()})
        self.gates = nn.ParameterDict({n: nn.Parameter(torch.ones(())) for n in GROUPS.names()})
        self.head = nn.Sequential(nn.Linear(Group.out, 6), nn.ReLU(), nn.Linear(6, 1))
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))

    def merge(self, raw: Tensor, alive: Iterable[str]) -> Tensor:
        total = torch.zeros(raw.shape[0], Group.out)
        for name in alive:
            total = total + self.gates[name] * self.groups[name](raw)
        return total

    def forward(self, raw: Tensor) -> Tuple[Tensor, int]:
        alive = self.plan.apply({"price", "volume", "calendar", "noise"})
        merged = self.merge(raw, sorted(alive))
        merged = merged / len(alive)
        return self.head(merged).squeeze(-1), len(alive)


def synth(n: int) -> Tuple[Tensor, Tensor]:
    raw = torch.randn(n, 8, device=DEVICE)
    y = 0.3 * raw[:, 0].abs() + raw[:, 3] - raw[:, 5].sin()
    return raw, y


def r2(pred: Tensor, y: Tensor) -> float:
    return 1.0 - ((pred - y).pow(2).sum() / (y - y.mean()).pow(2).sum()).item()


def experiment(label: str, plan: Plan) -> Dict[str, float]:
    model = Tabular(plan)
    fwd = torch.compile(model, backend="eager")
    opt = torch.optim.RMSprop(model.parameters(), lr=plan.lr)
    alive = -1
    for _ in range(plan.epochs):
        raw, y = synth(12)
        pred, alive = fwd(raw)
        loss = (pred - y).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        raw, y = synth(12)
        pred, _ = fwd(raw)
    metrics = {"mse": loss.item(), "r2": r2(pred, y), "alive": alive}
    print(f"{label:<16}" + "  ".join(f"{k} {v:.3f}" for k, v in metrics.items()))
    return metrics


if __name__ == "__main__":
    table = {
        "all": experiment("all", Plan([])),
        "no noise": experiment("no noise", Plan.without("noise")),
        "no price/noise": experiment("no price/noise", Plan.without("price", "noise")),
    }
    widths = [int(m["alive"]) for m in table.values()]
    print("groups alive per experiment:", widths)
    assert widths == [4, 3, 2], widths
