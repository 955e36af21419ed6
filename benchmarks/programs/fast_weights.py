# torch: 2.13.0
import random
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Config:
    vocab: int = 5
    width: int = 4
    length: int = 6
    rounds: int = 4
    lr: float = 0.05


def make_sequences(config, seed):
    rng = random.Random(seed)
    for _ in range(config.rounds):
        start = rng.randrange(config.vocab)
        stride = rng.choice([1, 2])
        yield [(start + stride * i) % config.vocab for i in range(config.length)]


class Decay(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.raw = nn.Parameter(torch.zeros(width))

    def rate(self):
        return torch.sigmoid(self.raw)


class Memory(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.decay = Decay(width)
        self.width = width

    def fresh(self):
        return torch.ones(self.width)

    def forward(self, trace, codes):
        rate = self.decay.rate()
        trace.mul_(rate)
        pooled = codes.mean(0)
        return (trace * 0.1).sum() + pooled


class Predictor(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embed = nn.Embedding(config.vocab, config.width)
        self.memory = Memory(config.width)
        self.out = nn.Linear(config.width, config.vocab)

    def forward(self, tokens, trace):
        codes = self.embed(tokens)
        mixed = self.memory(trace, codes)
        return self.out(torch.tanh(mixed))


class Trainer:
    def __init__(self, config, seed):
        torch.manual_seed(seed)
        self.config = config
        self.model = Predictor(config)
        self.forward = torch.compile(self.model, backend="aot_eager")
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=config.lr)
        self.losses = []
        self.traces = []

    def batches(self, seed):
        for sequence in make_sequences(self.config, seed):
            yield torch.tensor(sequence[:-1]), torch.tensor(sequence[-1])

    def train(self, seed):
        for tokens, target in self.batches(seed):
            trace = self.model.memory.fresh()
            logits = self.forward(tokens, trace)
            loss = nn.functional.cross_entropy(logits, target)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.losses.append(loss.item())
            self.traces.append(trace.detach().clone())
        return self.losses[-1]

    def snapshot(self):
        return {k: v.detach().clone() for k, v in self.model.named_parameters()}


def changed(before, after):
    return sorted(k for k in before if not torch.equal(before[k], after[k]))


def main():
    config = Config()
    trainer = Trainer(config, seed=1)
    before = trainer.snapshot()
    trainer.train(seed=2)
    after = trainer.snapshot()
    assert len(trainer.losses) == config.rounds
    assert all(loss > 0 for loss in trainer.losses)
    names = changed(before, after)
    assert "memory.decay.raw" in names and "embed.weight" in names, names
    first = trainer.traces[0]
    torch.testing.assert_close(first, torch.full((config.width,), 0.5))
    print("losses", [round(v, 4) for v in trainer.losses])


if __name__ == "__main__":
    main()
