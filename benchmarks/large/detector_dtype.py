"""One-stage detector head trained for a few steps in mixed precision; the loss is weighted per class."""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass, field

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


@dataclass
class OptimizerConfig:
    lr: float = 2e-3
    momentum: float = 0.9
    weight_decay: float = 1e-4


@dataclass
class Config:
    classes: int = 6
    channels: int = 12
    size: int = 8
    images: int = 8
    batch: int = 4
    epochs: int = 1
    seed: int = 5
    positive_weight: float = 2.0
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)


class Shapes(Dataset):
    """Images with one bright square, whose class is the quadrant it lies in."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.generator = torch.Generator().manual_seed(config.seed)
        self.items = [self._make(i) for i in range(config.images)]

    def _make(self, index: int):
        size = self.config.size
        image = torch.rand(3, size, size, generator=self.generator) * 0.1
        row, column = divmod(index * 7 % (size * size), size)
        image[:, row, column] += 1.0
        target = torch.zeros(self.config.classes)
        target[index % self.config.classes] = 1.0
        return image, target

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int):
        return self.items[index]


class ConvBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.norm = nn.GroupNorm(2, outputs)

    def forward(self, x):
        return F.silu(self.norm(self.conv(x)))


class Backbone(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config.channels
        self.stages = nn.ModuleList([ConvBlock(3, width), ConvBlock(width, width, 2), ConvBlock(width, width, 2)])

    def forward(self, x):
        for stage in self.stages:
            x = stage(x)
        return x.mean((-2, -1))


class Detector(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.backbone = Backbone(config)
        self.classifier = nn.Linear(config.channels, config.classes)
        prior = -math.log((1 - 0.1) / 0.1)
        nn.init.constant_(self.classifier.bias, prior)

    def forward(self, images):
        return self.classifier(self.backbone(images))


class ClassBalancedLoss(nn.Module):
    """Sigmoid cross entropy with a weight for each class, kept in full precision."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        weight = torch.linspace(1.0, config.positive_weight, config.classes)
        self.register_buffer("weight", weight / weight.mean())

    def forward(self, logits, targets):
        logits = logits.to(torch.bfloat16)
        return F.binary_cross_entropy_with_logits(logits, targets.to(torch.bfloat16), weight=self.weight)


class Meter:
    def __init__(self) -> None:
        self.values: list[float] = []

    def add(self, value: float) -> None:
        self.values.append(value)

    def summary(self) -> str:
        return f"mean {sum(self.values) / max(1, len(self.values)):.4f} over {len(self.values)} steps"


def train(config: Config) -> None:
    torch.manual_seed(config.seed)
    model, criterion = Detector(config), ClassBalancedLoss(config)
    criterion = torch.compile(criterion, backend="aot_eager_decomp_partition")
    options = config.optimizer
    optimizer = torch.optim.SGD(
        model.parameters(), lr=options.lr, momentum=options.momentum, weight_decay=options.weight_decay
    )
    loader = DataLoader(Shapes(config), batch_size=config.batch, shuffle=False)
    meter = Meter()
    for epoch in range(config.epochs):
        for images, targets in loader:
            optimizer.zero_grad(set_to_none=True)
            loss = criterion(model(images), targets)
            if loss.dtype is not torch.bfloat16:
                raise TypeError(f"the gradient scaler wants a bfloat16 loss, not {loss.dtype}")
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            meter.add(float(loss))
        print(f"epoch {epoch}: {meter.summary()}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=1)
    arguments = parser.parse_args([])
    train(Config(epochs=arguments.epochs))
