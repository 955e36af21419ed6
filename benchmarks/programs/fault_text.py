# torch: 2.13.0
"""Inference gateway with structured errors and a dead-letter list."""
import enum
import torch
from torch import nn


class Severity(enum.Enum):
    WARN = 1
    FATAL = 2


class GatewayError(Exception):
    severity = Severity.WARN

    def __str__(self):
        field, detail = self.args
        return f"{self.severity.name}:{field}:{detail}"


class TooLong(GatewayError):
    pass


class BadVersion(GatewayError):
    severity = Severity.FATAL


class Model(nn.Module):
    def __init__(self, vocab=16, dim=4, limit=5):
        super().__init__()
        self.table = nn.Embedding(vocab, dim)
        self.out = nn.Linear(dim, 2)
        self.limit = limit

    def validate(self, tokens, version):
        if version < 2:
            raise BadVersion("version", version)
        if tokens.shape[0] > self.limit:
            raise TooLong("tokens", tokens.shape[0])

    def forward(self, tokens, version):
        try:
            self.validate(tokens, version)
            note = ""
        except TooLong as err:
            tokens = tokens[: self.limit]
            note = str(err)
        except GatewayError as err:
            return torch.zeros(2), str(err)
        return self.out(self.table(tokens).mean(0)), note


class Gateway:
    def __init__(self, model):
        self.model = model
        self.dead = []
        self.ok = 0

    def __enter__(self):
        self.model.eval()
        return self

    def __exit__(self, *exc):
        self.model.train()
        return False

    @torch.no_grad()
    def submit(self, rid, tokens, version):
        scores, note = self.model(torch.tensor(tokens), version)
        if note:
            self.dead.append((rid, note))
        else:
            self.ok += 1
        return int(scores.argmax())


REQUESTS = [
    ("r1", [1, 2, 3], 2),
    ("r2", [1, 2, 3, 4, 5, 6, 7], 2),
    ("r3", [4, 4], 1),
    ("r4", [9, 8, 7], 3),
]


def main():
    torch.manual_seed(1)
    model = Model()
    model.compile(backend="eager", dynamic=False)
    with Gateway(model) as gw:
        labels = {rid: gw.submit(rid, toks, ver) for rid, toks, ver in REQUESTS}
    print("labels", labels)
    print("ok", gw.ok)
    for rid, note in gw.dead:
        print(rid, note or "<empty>")


main()
