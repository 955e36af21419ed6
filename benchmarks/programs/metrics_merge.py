# torch: 2.8.0
'''Multi-task head training; every task contributes its losses to one dict.

(Extracted from our trainer.  In the real thing the backbone is a ViT, here two linear
layers; tasks are plug-ins found by their decorator.)
'''
import logging
import os
from collections import OrderedDict
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Callable, ClassVar, Dict, List, Optional, Type

import torch
import torch.nn as nn
import torch.nn.functional as F

logger = logging.getLogger(os.path.basename(__file__))

LossDict = Dict[str, torch.Tensor]
cfg = SimpleNamespace(dim=6, hidden=10, batch=6, iters=2, lr=1e-2, weight_decay=1e-4)


class Task(nn.Module):
    registry: ClassVar["OrderedDict[str, Type[Task]]"] = OrderedDict()
    weight: float = 1.0

    def __init_subclass__(cls, key: Optional[str] = None, **kw) -> None:
        super().__init_subclass__(**kw)
        if key is not None:
            Task.registry[key] = cls

    def losses(self, feat: torch.Tensor, labels: Dict[str, torch.Tensor]) -> LossDict:
        raise NotImplementedError

    def forward(self, feat, labels):
        return {k: self.weight * v for k, v in self.losses(feat, labels).items()}


class Depth(Task, key="depth"):
    weight = 0.5

    def __init__(self) -> None:
        super().__init__()
        self.reg = nn.Linear(cfg.hidden, 1)

    def losses(self, feat, labels):
        pred = F.softplus(self.reg(feat)).squeeze(-1)
        diff = torch.log(pred + 1e-3) - torch.log(labels["depth"] + 1e-3)
        # scale-invariant log loss
        return {"depth/silog": (diff ** 2).mean() - 0.5 * diff.mean() ** 2}


class Semantics(Task, key="seg"):
    classes = 3

    def __init__(self) -> None:
        super().__init__()
        self.cls = nn.Linear(cfg.hidden, self.classes)

    def losses(self, feat, labels):
        logits = self.cls(feat)
        out = {"seg/ce": F.cross_entropy(logits, labels["seg"])}
        prob = logits.softmax(-1)
        hot = F.one_hot(labels["seg"], self.classes).float()
        inter = (prob * hot).sum(0)
        union = prob.sum(0) + hot.sum(0)
        out["seg/dice"] = 1 - (2 * inter / (union + 1e-6)).mean()
        return out


class Normals(Task, key="normals"):
    weight = 2.0

    def __init__(self) -> None:
        super().__init__()
        self.vec = nn.Linear(cfg.hidden, 3)

    def losses(self, feat, labels):
        n = F.normalize(self.vec(feat), dim=-1)
        return {"normals/cos": 1 - F.cosine_similarity(n, labels["normals"], dim=-1).mean()}


class Regulariser:
    """Extra terms which any part of the model may hand in."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model

    def collect(self, feat: torch.Tensor) -> LossDict:
        return {"reg/act": 1e-2 * feat.pow(2).mean()}


class Collector:
    """Keeps the bag of all losses; `sink` is what the tasks write to."""

    def __init__(self) -> None:
        self.bag: LossDict = {}

    def merge(self, more: LossDict) -> None:
        sink = self.bag
        sink |= more

    def total(self) -> torch.Tensor:
        return sum(self.bag.values(), torch.zeros(()))


class MultiTask(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Linear(cfg.dim, cfg.hidden), nn.Hardswish(), nn.Linear(cfg.hidden, cfg.hidden)
        )
        self.tasks = nn.ModuleDict({k: cls() for k, cls in Task.registry.items()})
        self.reg = Regulariser(self.backbone)

    def forward(self, x: torch.Tensor, labels: Dict[str, torch.Tensor]):
        feat = self.backbone(x)
        collector = Collector()
        for task in self.tasks.values():
            collector.merge(task(feat, labels))
        collector.merge(self.reg.collect(feat))
        return collector.total(), collector.bag


@contextmanager
def grad_scale(params: List[nn.Parameter], factor: float):
    """All gradients which come in meanwhile are scaled"""
    with ExitStack() as stack:
        for p in params:
            handle = p.register_hook(lambda g: g * factor)
            stack.callback(handle.remove)
        yield


def batch() -> Dict[str, torch.Tensor]:
    n = cfg.batch
    normals = F.normalize(torch.randn(n, 3), dim=-1)
    return {
        "image": torch.randn(n, cfg.dim),
        "depth": torch.rand(n) + 0.5,
        "seg": torch.arange(n) % Semantics.classes,
        "normals": normals,
    }


def to_floats(d: LossDict, fmt: Callable[[float], str] = "{:.3f}".format) -> str:
    return ", ".join(f"{k} {fmt(v.item())}" for k, v in d.items()) or "(nothing)"


def main() -> None:
    model = MultiTask()
    step = torch.compile(model, backend="eager")
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=cfg.weight_decay)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=cfg.iters)
    for it in range(cfg.iters):
        b = batch()
        total, parts = step(b.pop("image"), b)
        opt.zero_grad()
        if total.requires_grad:
            with grad_scale(list(model.backbone.parameters()), 0.1):
                total.backward()
            opt.step()
        else:
            logger.warning("iteration %d: nothing to optimise", it)
        sched.step()
        print(f"it {it} lr {sched.get_last_lr()[0]:.4f} total {total.item():.4f}: {to_floats(parts)}")


if __name__ == "__main__":
    main()
