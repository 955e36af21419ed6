# torch: 2.8.0
"""
Image encoder / decoder which must swallow images of whatever size.

The patcher tries the cheap way (a view) and, where the image can't be cut into
patches evenly, pads it and copies.  Works since torch 1.x; since we put
torch.compile around the encoder, odd sizes bring the job down.
"""
import argparse
import collections
import sys
import typing as t

import torch
import torch.nn as nn
import torch.nn.functional as F

Size = t.Tuple[int, int]
Image = torch.Tensor


class Settings(t.NamedTuple):
    patch: int = 4
    dim: int = 12
    heads: int = 2
    depth: int = 2
    sizes: t.Tuple[Size, ...] = ((8, 8), (9, 7))
    backend: str = "eager"


class Counter(collections.Counter):
    def report(self) -> str:
        return ", ".join(f"{k}:{v}" for k, v in sorted(self.items()))


def pad_to(img: Image, multiple: int) -> Image:
    h, w = img.shape[-2:]
    return F.pad(img, (0, -w % multiple, 0, -h % multiple))


class Patcher:
    """(B, H, W) -> (B, N, patch * patch)"""

    def __init__(self, patch: int) -> None:
        self.patch = patch

    def cut(self, img: Image) -> Image:
        b, h, w = img.shape
        p = self.patch
        return img.view(b, h // p, p, w // p, p)

    def __call__(self, img: Image) -> Image:
        try:
            blocks = self.cut(img)
        except RuntimeError:
            # odd size: needs padding
            blocks = self.cut(pad_to(img, self.patch))
        b = blocks.shape[0]
        return blocks.permute(0, 1, 3, 2, 4).reshape(b, -1, self.patch ** 2)


class Attention(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        assert dim % heads == 0
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, n, d = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        att = (q @ k.transpose(-2, -1)) * (d // self.heads) ** -0.5
        att = att.softmax(dim=-1)
        return self.proj((att @ v).transpose(1, 2).reshape(b, n, d))


class Residual(nn.Module):
    def __init__(self, fn: nn.Module, dim: int) -> None:
        super().__init__()
        self.fn = fn
        self.norm = nn.LayerNorm(dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.fn(self.norm(x))


class Encoder(nn.Module):
    def __init__(self, cfg: Settings) -> None:
        super().__init__()
        self.patcher = Patcher(cfg.patch)
        self.embed = nn.Linear(cfg.patch ** 2, cfg.dim)
        self.cls = nn.Parameter(torch.zeros(1, 1, cfg.dim))
        blocks: "collections.OrderedDict[str, nn.Module]" = collections.OrderedDict()
        for i in range(cfg.depth):
            blocks[f"att{i}"] = Residual(Attention(cfg.dim, cfg.heads), cfg.dim)
            mlp = nn.Sequential(nn.Linear(cfg.dim, 2 * cfg.dim), nn.GELU(), nn.Linear(2 * cfg.dim, cfg.dim))
            blocks[f"mlp{i}"] = Residual(mlp, cfg.dim)
        self.blocks = nn.Sequential(blocks)

        # small closure, to share the token arithmetic with the decoder
        def with_cls(tokens: torch.Tensor) -> torch.Tensor:
            return torch.cat([self.cls.expand(tokens.shape[0], -1, -1), tokens], dim=1)

        self.with_cls = with_cls

    def forward(self, img: Image) -> torch.Tensor:
        tokens = self.embed(self.patcher(img))
        return self.blocks(self.with_cls(tokens))


class Decoder(nn.Module):
    def __init__(self, cfg: Settings) -> None:
        super().__init__()
        self.head = nn.Linear(cfg.dim, cfg.patch ** 2)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(self.head(tokens[:, 1:]))


class AutoEncoder(nn.Module):
    def __init__(self, cfg: Settings) -> None:
        super().__init__()
        self.encoder = Encoder(cfg)
        self.decoder = Decoder(cfg)

    def forward(self, img: Image) -> torch.Tensor:
        return self.decoder(self.encoder(img))


def checkerboard(size: Size, batch: int = 2) -> Image:
    h, w = size
    ys, xs = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
    board = ((ys + xs) % 2).float()
    return torch.stack([board, 1 - board][:batch]).contiguous()


def train_one(model: nn.Module, fn: t.Callable, opt: torch.optim.Optimizer, img: Image, patch: int) -> float:
    recon = fn(img)
    with torch.no_grad():
        target = Patcher(patch)(pad_to(img, patch))
    loss = F.binary_cross_entropy(recon, target)
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.item()


def main(argv: t.Optional[t.List[str]] = None) -> int:
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=1)
    ap.add_argument("--lr", type=float, default=3e-3)
    args = ap.parse_args(argv)

    cfg = Settings()
    torch.manual_seed(0)
    model = AutoEncoder(cfg)
    fn = torch.compile(model, backend=cfg.backend)
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    seen = Counter()
    for step in range(args.steps):
        for size in cfg.sizes:
            loss = train_one(model, fn, opt, checkerboard(size), cfg.patch)
            seen["x".join(map(str, size))] += 1
            print(f"step {step} {size}: bce {loss:.4f}")
    print("sizes:", seen.report())
    return 0


if __name__ == "__main__":
    sys.exit(main([]))
