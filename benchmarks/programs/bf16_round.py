# torch: 2.8.0
"""Study of storage formats for model weights: error and size of each codec."""
import sys
from dataclasses import dataclass
from typing import Callable, ClassVar, Dict, Type

import torch
from torch import Tensor, nn


class Codec:
    bits: ClassVar[int] = 32
    known: ClassVar[Dict[str, Type["Codec"]]] = {}

    def __init_subclass__(cls, key: str, **kw):
        super().__init_subclass__(**kw)
        cls.key = key
        Codec.known[key] = cls

    def roundtrip(self, w: Tensor) -> Tensor:
        raise NotImplementedError

    def size(self, w: Tensor) -> int:
        return w.numel() * self.bits // 8


class Affine8(Codec, key="int8"):
    bits = 8

    def roundtrip(self, w):
        scale = w.abs().amax() / 127
        q = torch.clamp(torch.round(w / scale), -127, 127)
        return q * scale


class Brain(Codec, key="bfloat16"):
    bits = 16

    def roundtrip(self, w):
        return w.to(torch.bfloat16).to(torch.float32)


class RowAffine4(Codec, key="row-int4"):
    bits = 4

    def roundtrip(self, w):
        lo = w.amin(dim=-1, keepdim=True)
        step = (w.amax(dim=-1, keepdim=True) - lo).clamp(min=1e-8) / 15
        return torch.round((w - lo) / step) * step + lo

    def size(self, w):
        return super().size(w) + 8 * w.shape[0]


@dataclass
class Row:
    codec: str
    layer: str
    rel_error: float
    snr_db: float
    nbytes: int

    def __format__(self, spec):
        if spec == "csv":
            return f"{self.codec},{self.layer},{self.rel_error:.6f},{self.nbytes}"
        return (f"{self.codec:>9} {self.layer:<10} rel {self.rel_error:.5f} "
                f"snr {self.snr_db:6.1f} dB {self.nbytes:5d} B")


def make_error_fn(codec: Codec) -> Callable:
    """Closure for one codec, compiled once and used for all layers."""

    def error(w: Tensor):
        back = codec.roundtrip(w)
        diff = w - back
        return diff.square().sum().sqrt() / w.square().sum().sqrt(), diff.abs().max()

    return torch.compile(error, backend="inductor", dynamic=True)


class Net(nn.Module):
    def __init__(self, sizes=(10, 24, 12, 3)):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = layer(x) if i == len(self.layers) - 1 else torch.relu(layer(x))
        return x


def train(net: nn.Module, steps: int = 40) -> float:
    gen = torch.Generator().manual_seed(1)
    x = torch.randn(90, 10, generator=gen)
    y = x[:, :3].argmax(1)
    opt = torch.optim.Adam(net.parameters(), lr=0.02)
    for _ in range(steps):
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return (net(x).argmax(1) == y).float().mean().item()


def evaluate(net: nn.Module, key: str):
    codec = Codec.known[key]()
    fn = make_error_fn(codec)
    for name, p in net.named_parameters():
        if p.dim() < 2:
            continue
        w = p.detach()
        rel, worst = fn(w)
        rel = float(rel)
        snr = -20 * torch.log10(torch.tensor(max(rel, 1e-9))).item()
        yield Row(key, name, rel, snr, codec.size(w)), float(worst)


def main() -> int:
    torch.manual_seed(3)
    net = Net()
    print(f"train accuracy {train(net):.3f}")
    print("layers:", ", ".join(f"{n}{list(p.shape)}" for n, p in net.named_parameters() if p.dim() > 1))
    rows = []
    for key in ("bfloat16", "int8"):
        for row, worst in evaluate(net, key):
            rows.append(row)
            print(f"{row}  worst {worst:.4f}")
    slow = RowAffine4()
    for name, p in net.named_parameters():
        if p.dim() > 1:
            err = (slow.roundtrip(p.detach()) - p.detach()).norm() / p.detach().norm()
            rows.append(Row(slow.key, name, err.item(), -20 * err.log10().item(), slow.size(p)))
    best = min(rows, key=lambda r: (r.rel_error, r.nbytes))
    print("most faithful:", f"{best:csv}")
    cheap = [r for r in rows if r.rel_error < 0.05]
    print("below 5% error:", sorted({r.codec for r in cheap}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
