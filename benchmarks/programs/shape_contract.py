"""A tiny serving layer which checks requests against a declared contract."""
import json
from typing import Callable, Dict, List, Protocol

import torch
from torch import nn


class Check(Protocol):
    def __call__(self, batch: torch.Tensor) -> bool: ...


SCHEMA = json.loads('{"image": [2, 3, 8, 8], "embed": [2, 16], "scalar": [2]}')


class Encoder(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.head = nn.Linear(4, dim)

    def forward(self, images):
        h = torch.relu(self.conv(images))
        return self.head(h.mean(dim=(2, 3)))


class Contract:
    """Decides whether the incoming batch needs to be adapted.

    The expected shapes come out of JSON and therefore are lists, which never
    equal a torch.Size: then the batch takes the (safe) adapting path.
    """

    def __init__(self, schema: Dict[str, List[int]]):
        self.schema = schema
        self.adapted = 0

    def native(self, kind, batch):
        return batch.shape == self.schema[kind]

    def adapt(self, kind, batch):
        self.adapted += 1
        if kind == "image":
            return batch.clamp(0.0, 1.0)
        return batch / batch.norm(dim=-1, keepdim=True)


class Service:
    def __init__(self, model: nn.Module, contract: Contract):
        self.model = model
        self.contract = contract
        self.routes: Dict[str, Callable] = {
            "image": self.on_image,
            "embed": self.on_embed,
        }

    def prepare(self, kind, batch):
        if self.contract.native(kind, batch):
            return batch
        return self.contract.adapt(kind, batch)

    def on_image(self, batch):
        return self.model(self.prepare("image", batch))

    def on_embed(self, batch):
        return self.prepare("embed", batch)

    def handle(self, kind, batch):
        return self.routes[kind](batch)


def similarity(service, images, embeds):
    a = service.handle("image", images)
    b = service.handle("embed", embeds)
    return torch.cosine_similarity(a, b), b.norm(dim=-1)


def run(wrap):
    torch.manual_seed(11)
    service = Service(Encoder().eval(), Contract(SCHEMA))
    images = torch.randn(2, 3, 8, 8) * 2
    embeds = torch.randn(2, 16) * 3
    with torch.no_grad():
        scores, norms = wrap(similarity)(service, images, embeds)
    return scores, norms, service.contract.adapted


if __name__ == "__main__":
    expect = run(lambda fn: fn)
    got = run(lambda fn: torch.compile(fn, backend="eager"))
    print("eager   ", expect)
    print("compiled", got)
    torch.testing.assert_close(got[:2], expect[:2])
    assert got[2] == expect[2]
