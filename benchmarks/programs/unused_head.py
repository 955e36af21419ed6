# torch: 2.8.0
"""Alternating multi-task training (regression / ranking) with a shared trunk."""
import copy
import enum
import math
from dataclasses import asdict, dataclass
from typing import Dict

import torch
from torch import Tensor, nn


class Task(str, enum.Enum):
    PRICE = "price"
    RANK = "rank"


@dataclass(frozen=True)
class Hyper:
    dim: int = 6
    hidden: int = 10
    lr: float = 0.05
    weight_decay: float = 0.2
    steps_per_task: int = 8
    cycles: int = 2
    backend: str = "aot_eager"


class Trunk(nn.Module):
    def __init__(self, hp: Hyper):
        super().__init__()
        self.inp = nn.Linear(hp.dim, hp.hidden)
        self.gate = nn.Linear(hp.dim, hp.hidden)

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(self.inp(x)) * torch.sigmoid(self.gate(x))


class Head(nn.Module):
    def __init__(self, hidden: int, out: int = 1):
        super().__init__()
        self.fc = nn.Linear(hidden, hidden // 2)
        self.out = nn.Linear(hidden // 2, out)

    def forward(self, h: Tensor) -> Tensor:
        return self.out(torch.relu(self.fc(h))).squeeze(-1)

    def size(self) -> float:
        return math.sqrt(sum(p.detach().square().sum().item() for p in self.parameters()))


class MultiTask(nn.Module):
    def __init__(self, hp: Hyper):
        super().__init__()
        self.trunk = Trunk(hp)
        self.heads = nn.ModuleDict({t.value: Head(hp.hidden) for t in Task})

    def forward(self, x: Tensor) -> Dict[str, Tensor]:
        h = self.trunk(x)
        return {name: head(h) for name, head in self.heads.items()}


class Data:
    def __init__(self, dim: int, n: int = 64, seed: int = 8):
        g = torch.Generator().manual_seed(seed)
        self.x = torch.randn(n, dim, generator=g)
        w = torch.randn(dim, generator=g)
        self.price = self.x @ w + 0.3 * self.x[:, 0] * self.x[:, 1]
        self.rank = torch.sin(self.x @ w.flip(0))

    def minibatch(self, k: int, step: int):
        idx = torch.arange(step * k, (step + 1) * k) % len(self.x)
        return self.x[idx], self.price[idx], self.rank[idx]


def rank_loss(score: Tensor, target: Tensor) -> Tensor:
    ds = score[:, None] - score[None, :]
    dt = (target[:, None] - target[None, :]).sign()
    return torch.nn.functional.softplus(-ds * dt).mean()


LOSSES = {
    Task.PRICE: lambda out, price, rank: (out["price"] - price).square().mean(),
    Task.RANK: lambda out, price, rank: rank_loss(out["rank"], rank),
}


class EMA:
    """Exponential moving average of the model, used for evaluation."""

    def __init__(self, model: nn.Module, decay: float = 0.8):
        self.shadow = copy.deepcopy(model)
        self.decay = decay

    @torch.no_grad()
    def update(self, model: nn.Module):
        for s, p in zip(self.shadow.parameters(), model.parameters()):
            s.lerp_(p, 1 - self.decay)


class Trainer:
    def __init__(self, hp: Hyper):
        torch.manual_seed(17)
        self.hp = hp
        self.model = MultiTask(hp)
        self.net = torch.compile(self.model, backend=hp.backend)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=hp.lr, weight_decay=hp.weight_decay)
        self.ema = EMA(self.model)
        self.data = Data(hp.dim)
        self.step_no = 0

    def step(self, task: Task) -> float:
        x, price, rank = self.data.minibatch(16, self.step_no)
        self.opt.zero_grad(set_to_none=True)
        loss = LOSSES[task](self.net(x), price, rank)
        loss.backward()
        self.opt.step()
        self.ema.update(self.model)
        self.step_no += 1
        return loss.item()

    def run(self):
        for cycle in range(self.hp.cycles):
            for task in Task:
                losses = [self.step(task) for _ in range(self.hp.steps_per_task)]
                yield cycle, task, losses[0], losses[-1]


def main():
    hp = Hyper()
    print({k: v for k, v in asdict(hp).items() if k != "backend"})
    trainer = Trainer(hp)
    for cycle, task, first, last in trainer.run():
        norms = {n: round(h.size(), 4) for n, h in trainer.model.heads.items()}
        print(f"cycle {cycle} {task.value:<5} {first:.4f} -> {last:.4f}  head norms {norms}")
    with torch.no_grad():
        out = trainer.ema.shadow(trainer.data.x)
    print("ema price mse", round((out["price"] - trainer.data.price).square().mean().item(), 4))


if __name__ == "__main__":
    main()
