"""Multi-modal fusion: a whole modality can be dropped; broken sensors must be visible."""
import math
import os
from abc import abstractmethod
from typing import ClassVar, Dict, Type

import torch
from torch import nn
import torch.nn.functional as F

BACKEND = os.environ.get("FUSION_BACKEND", "aot_eager_decomp_partition")


class Modality(nn.Module):
    registry: ClassVar[Dict[str, Type["Modality"]]] = {}

    def __init_subclass__(cls, tag: str, **kw):
        super().__init_subclass__(**kw)
        Modality.registry[tag] = cls
        cls.tag = tag

    def __init__(self, drop: float):
        super().__init__()
        self.drop = drop

    @abstractmethod
    def encode(self, x):
        ...

    def forward(self, x):
        return F.dropout(self.encode(x), p=self.drop, training=self.training)


class Audio(Modality, tag="audio"):
    def encode(self, x):
        return x.log()


class Depth(Modality, tag="depth"):
    def encode(self, x):
        return x / 10


class Fusion(nn.Module):
    def __init__(self, drops):
        super().__init__()
        self.parts = nn.ModuleDict(
            {tag: Modality.registry[tag](p) for tag, p in drops.items()}
        )

    def forward(self, inputs):
        total = None
        for tag, part in self.parts.items():
            h = part(inputs[tag])
            total = h if total is None else total + h
        return total


class Watchdog:
    """Raises an alert for the samples that hold something not finite."""

    def __init__(self):
        self.alerts = []

    def inspect(self, step, features):
        bad = torch.nonzero(~features.isfinite().all(dim=1)).flatten().tolist()
        if bad:
            self.alerts.append((step, bad))
        return features


def samples():
    silent = torch.tensor([[1.0, 2.0], [0.0, 1.0], [math.e, 1.0]])
    depth = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    for k in range(2):
        yield {"audio": silent.roll(k, 0), "depth": depth}


def watch(model):
    dog = Watchdog()
    for step, batch in enumerate(samples()):
        dog.inspect(step, model(batch))
    return dog.alerts


fusion = Fusion({"audio": 1.0, "depth": 0.0}).train()
expected = watch(fusion)
found = watch(torch.compile(fusion, backend=BACKEND))
print("alerts in eager   :", expected)
print("alerts in compiled:", found)
assert expected == found, "compiled model hides the silent microphone"
