# torch: 2.8.0
"""Train a small codec whose codes are snapped to a grid in place, with a straight-through gradient."""
import abc
import copy
import functools
import itertools
import operator
import os
import random
import weakref
from typing import Callable, ClassVar, Generic, Iterable, List, Mapping, NamedTuple, Tuple, TypeVar

import numpy as np
import torch
from torch import nn
from torch.autograd import Function
from torch.nn.utils import parametrize
from torch.utils.data import BatchSampler, SequentialSampler, TensorDataset

T = TypeVar("T")


class Snap(Function):
    """Scale to the grid in place; the caller goes on with what it gave, so no result is used."""

    @staticmethod
    def forward(ctx, codes, levels):
        ctx.levels = levels
        ctx.mark_dirty(codes)
        codes.mul_(levels)
        return codes

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.levels, None


class Registry(Generic[T]):
    def __init__(self) -> None:
        self._of: dict = {}

    def __call__(self, name: str) -> Callable[[T], T]:
        return lambda item: self._of.setdefault(name, item)

    def __getitem__(self, name: str) -> T:
        return self._of[name]


quantizers: Registry = Registry()


class Quantizer(nn.Module, abc.ABC):
    levels: ClassVar[int] = 1

    @abc.abstractmethod
    def quantize(self, codes: torch.Tensor) -> torch.Tensor: ...

    def forward(self, codes):
        return self.quantize(codes)


@quantizers("none")
class Passing(Quantizer):
    def quantize(self, codes):
        return codes


@quantizers("grid")
class Grid(Quantizer):
    levels = 3

    def quantize(self, codes):
        codes = codes.contiguous() * 1.0
        Snap.apply(codes, self.levels)
        return codes


class Symmetric(nn.Module):
    def forward(self, weight):
        return weight.triu() + weight.triu(1).T


class Sample(NamedTuple):
    signal: torch.Tensor
    gain: torch.Tensor


class Codec(nn.Module):
    def __init__(self, width: int, quantizer: str) -> None:
        super().__init__()
        self.analysis = nn.Linear(width, width, bias=False)
        parametrize.register_parametrization(self.analysis, "weight", Symmetric())
        self.mixers = nn.ModuleList(nn.Conv1d(1, 1, 3, padding=1) for _ in range(2))
        self.quantizer = quantizers[quantizer]()
        self.synthesis = nn.Linear(width, width)

    def encode(self, signal):
        h = self.analysis(signal)
        for mixer in self.mixers:
            h = h + torch.sin(mixer(h[:, None]))[:, 0]
        return h

    def forward(self, signal):
        codes = self.quantizer(self.encode(signal))
        return self.synthesis(codes), codes


class Average:
    """Exponential average of a model's parameters."""

    def __init__(self, model: nn.Module, decay: float = 0.9) -> None:
        self.model = weakref.ref(model)
        self.decay = decay
        self.shadow = copy.deepcopy(dict(model.named_parameters()))

    @torch.no_grad()
    def update(self) -> None:
        for name, parameter in self.model().named_parameters():
            self.shadow[name].lerp_(parameter, 1 - self.decay)

    def distance(self) -> float:
        pairs: Mapping = dict(self.model().named_parameters())
        return float(sum((self.shadow[name] - value).abs().sum() for name, value in pairs.items()))


def samples(count: int, width: int) -> Iterable[Sample]:
    rng = np.random.default_rng(8)
    base = np.sin(np.linspace(0, 6, width))
    for _ in range(count):
        gain = rng.uniform(0.5, 1.5)
        yield Sample(torch.as_tensor(base * gain, dtype=torch.float32), torch.tensor(gain, dtype=torch.float32))


def collate(items: List[Sample]) -> Tuple[torch.Tensor, ...]:
    return tuple(map(torch.stack, zip(*items)))


def train(model: nn.Module, data: TensorDataset, epochs: int) -> List[float]:
    run = torch.compile(model, backend="eager")
    optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3)
    average, norms = Average(model), []
    batches = BatchSampler(SequentialSampler(data), batch_size=3, drop_last=True)
    for _, indices in itertools.product(range(epochs), batches):
        signal, gain = data[indices]
        out, codes = run(signal)
        loss = (out - signal).square().mean() + 1e-3 * codes.abs().mean() * gain.mean()
        optimizer.zero_grad()
        loss.backward()
        total = functools.reduce(operator.add, (p.grad.square().sum() for p in model.parameters() if p.grad is not None))
        norms.append(float(total.sqrt()))
        optimizer.step()
        average.update()
    print("drift", round(average.distance(), 4))
    return norms


def main() -> None:
    torch.manual_seed(int(os.environ.get("SEED", 1)))
    random.seed(1)
    data = TensorDataset(*collate(list(samples(6, 8))))
    norms = train(Codec(8, "grid"), data, epochs=1)
    print("norms", *(f"{norm:.3f}" for norm in norms))


main()
