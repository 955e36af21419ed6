# torch: 2.13.0
"""Plans which token windows go into a micro batch.  A planner walks over the
window flags once: it skips up to the first usable window, then packs the rest."""
import argparse
import itertools
import logging
import operator
from dataclasses import dataclass
from typing import Dict, Iterable, Iterator, List, NamedTuple, Sequence

import torch
import torch.nn as nn
import torch.nn.functional as F

LOG = logging.getLogger("planner")


class Window(NamedTuple):
    start: int
    length: int
    usable: bool

    @property
    def stop(self) -> int:
        return self.start + self.length


@dataclass
class PlanConfig:
    vocab: int = 17
    dim: int = 6
    window: int = 4
    stride: int = 3
    pad_id: int = 0
    backend: str = "eager"


def make_tokens(total: int, cfg: PlanConfig) -> torch.Tensor:
    base = torch.arange(total) * 5 % (cfg.vocab - 1) + 1
    base[: cfg.window] = cfg.pad_id
    return base


def cut_windows(tokens: torch.Tensor, cfg: PlanConfig) -> List[Window]:
    windows = []
    for start in range(0, tokens.numel() - cfg.window + 1, cfg.stride):
        piece = tokens[start : start + cfg.window]
        usable = bool((piece != cfg.pad_id).sum() > cfg.window // 2)
        windows.append(Window(start, cfg.window, usable))
    return windows


class Embedder(nn.Module):
    def __init__(self, cfg: PlanConfig) -> None:
        super().__init__()
        self.table = nn.Embedding(cfg.vocab, cfg.dim, padding_idx=cfg.pad_id)
        self.gate = nn.Parameter(torch.linspace(0.5, 1.5, cfg.dim))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return F.gelu(self.table(ids)) * self.gate


class Planner:
    """Chooses offsets relative to the first usable window."""

    def __init__(self, cfg: PlanConfig, windows: Sequence[Window]) -> None:
        self.cfg = cfg
        self.windows = list(windows)
        self.flags = [int(w.usable) for w in self.windows]

    def weights(self) -> List[float]:
        return list(itertools.accumulate((1.0 for _ in self.windows), operator.add))

    def pack(self, x: torch.Tensor, flags: List[int]) -> torch.Tensor:
        """Sum the windows that come after the first usable one, with a growing
        weight; everything up to that window is warm-up and is left out."""
        cursor = iter(flags)
        total = torch.zeros_like(x[0])
        if not any(cursor):
            return total
        rest = list(cursor)
        first = len(flags) - len(rest)
        for step, flag in enumerate(rest):
            if flag:
                total = total + (step + 1) * x[first + step]
        return total


class MicroBatcher:
    def __init__(self, cfg: PlanConfig, model: Embedder) -> None:
        self.cfg = cfg
        self.model = model
        self.seen: Dict[str, torch.Tensor] = {}

    def features(self, tokens: torch.Tensor, windows: Iterable[Window]) -> torch.Tensor:
        rows = [self.model(tokens[w.start : w.stop]).mean(0) for w in windows]
        return torch.stack(rows)

    def process(self, name: str, tokens: torch.Tensor) -> torch.Tensor:
        windows = cut_windows(tokens, self.cfg)
        planner = Planner(self.cfg, windows)
        feats = self.features(tokens, windows)
        packed = torch.compile(planner.pack, backend=self.cfg.backend)(feats, planner.flags)
        norm = packed / planner.weights()[-1]
        self.seen[name] = norm
        LOG.info("%s: %d windows, flags %s", name, len(windows), planner.flags)
        return norm


def documents(cfg: PlanConfig) -> Iterator[tuple]:
    for i, total in enumerate((19, 25, 31)):
        yield f"doc{i}", make_tokens(total, cfg).roll(i)


def brute_force(feats: torch.Tensor, flags: Sequence[int]) -> torch.Tensor:
    first = flags.index(1) + 1
    out = torch.zeros(feats.shape[1])
    for step, i in enumerate(range(first, len(flags))):
        out += flags[i] * (step + 1) * feats[i]
    return out


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO if args.verbose else logging.ERROR)
    cfg = PlanConfig()
    torch.manual_seed(3)
    batcher = MicroBatcher(cfg, Embedder(cfg).eval())
    with torch.no_grad():
        for name, tokens in documents(cfg):
            got = batcher.process(name, tokens)
            windows = cut_windows(tokens, cfg)
            flags = [int(w.usable) for w in windows]
            want = brute_force(batcher.features(tokens, windows), flags) / len(windows)
            print(name, "packed norm", round(float(got.norm()), 4))
            torch.testing.assert_close(got, want)
    print("planned", len(batcher.seen), "documents")


if __name__ == "__main__":
    main()
