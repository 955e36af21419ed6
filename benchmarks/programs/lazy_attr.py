# torch: 2.13.0
"""Config classes with computed class attributes ("classproperty") feeding a tiny LM."""
import random
import torch
import torch.nn.functional as F


class classproperty:
    def __init__(self, fn):
        self.fn = fn
        self.hits = 0

    def __get__(self, obj, owner):
        return self.fn(owner)


class BaseConfig:
    heads = 2
    head_dim = 4
    layers = 1

    @classproperty
    def width(cls):
        return cls.heads * cls.head_dim

    @classproperty
    def scale(cls):
        return cls.head_dim**-0.5

    @classmethod
    def describe(cls):
        return f"{cls.__name__}(heads={cls.heads}, dim={cls.head_dim}, layers={cls.layers})"


class SmallConfig(BaseConfig):
    layers = 2


class Block(torch.nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        w = cfg.heads * cfg.head_dim
        self.qkv = torch.nn.Linear(w, 3 * w)
        self.proj = torch.nn.Linear(w, w)

    def forward(self, x):
        b, t, _ = x.shape
        cfg = self.cfg
        q, k, v = (
            y.view(b, t, cfg.heads, cfg.head_dim).transpose(1, 2) for y in self.qkv(x).chunk(3, -1)
        )
        att = (q @ k.transpose(-1, -2) * cfg.scale).softmax(-1) @ v
        return x + self.proj(att.transpose(1, 2).reshape(b, t, cfg.width))


class LM(torch.nn.Module):
    def __init__(self, cfg, vocab):
        super().__init__()
        self.emb = torch.nn.Embedding(vocab, cfg.heads * cfg.head_dim)
        self.blocks = torch.nn.ModuleList(Block(cfg) for _ in range(cfg.layers))

    def forward(self, ids):
        h = self.emb(ids)
        for b in self.blocks:
            h = b(h)
        return h @ self.emb.weight.T


def corpus(n, length, vocab):
    rng = random.Random(0)
    for _ in range(n):
        start = rng.randrange(vocab)
        yield [(start + i) % vocab for i in range(length)]


def train(cfg, vocab=7, steps=4):
    model = LM(cfg, vocab)
    step = torch.compile(model, backend="eager")
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for row in corpus(steps, 6, vocab):
        ids = torch.tensor([row])
        loss = F.cross_entropy(step(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    print(SmallConfig.describe())
    print("final loss %.3f" % train(SmallConfig))
