# torch: 2.13.0
"""Variable-length speech-to-text toy with a shape report ("where did my frames go?").

The model hands back, next to its logits, a table of how many frames are left after each
stage.  Lengths differ from batch to batch, hence dynamic shapes.
"""
from dataclasses import dataclass
from itertools import groupby
from string import ascii_lowercase
from textwrap import indent
from typing import Callable, Dict, List, Sequence, Tuple, Union

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

ALPHABET = "-" + ascii_lowercase[:4]   # blank first
FEATS = 5


@dataclass
class Stage:
    name: str
    module: Callable[[Tensor], Tensor]
    factor: int = 1


class Subsample(nn.Module):
    """Keeps every n-th frame after a convolution over time"""

    def __init__(self, dim: int, n: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(dim, dim, kernel_size=3, stride=n, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.conv(x.transpose(1, 2))).transpose(1, 2)


class Mixer(nn.Module):
    """Depth-wise over time, then over channels"""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.time = nn.Conv1d(dim, dim, 3, padding=1, groups=dim)
        self.chan = nn.Linear(dim, dim)
        self.gamma = nn.Parameter(torch.full((dim,), 0.1))

    def forward(self, x: Tensor) -> Tensor:
        y = self.time(x.transpose(1, 2)).transpose(1, 2)
        return x + self.gamma * self.chan(F.silu(y))


class Report:
    """Lines of a two column table"""

    def __init__(self, title: str) -> None:
        self.title = title
        self.rows: List[str] = []

    def add(self, label: str, frames: int) -> None:
        self.rows.append(f"{label:<10}|{frames:>5d}")

    def text(self) -> str:
        return "\n".join([self.title, *self.rows])


class Recogniser(nn.Module):
    def __init__(self, dim: int = 6, depth: int = 2) -> None:
        super().__init__()
        self.inp = nn.Linear(FEATS, dim)
        self.sub = Subsample(dim, 2)
        self.mix = nn.ModuleList(Mixer(dim) for _ in range(depth))
        self.out = nn.Linear(dim, len(ALPHABET))
        self.stages = [Stage("input", self.inp), Stage("subsample", self.sub, 2)]
        self.stages += [Stage(f"mixer{i}", m) for i, m in enumerate(self.mix)]

    def forward(self, x: Tensor) -> Tuple[Tensor, str]:
        report = Report("stage      frames")
        for stage in self.stages:
            x = stage.module(x)
            report.add(stage.name, x.shape[1])
        logits = self.out(x)
        return F.log_softmax(logits, dim=-1), report.text()


def utterance(length: int) -> Tensor:
    t = torch.arange(length, dtype=torch.float32)[:, None]
    k = torch.arange(1, FEATS + 1)[None, :]
    return torch.sin(t * k / 3) + 0.05 * torch.randn(length, FEATS)


def collate(lengths: Sequence[int]) -> Tuple[Tensor, Tensor]:
    xs = [utterance(n) for n in lengths]
    return pad_sequence(xs, batch_first=True), torch.tensor(lengths)


def encode(word: str) -> List[int]:
    return [ALPHABET.index(c) for c in word]


def greedy(logp: Tensor) -> List[str]:
    words = []
    for row in logp.argmax(-1).tolist():
        merged = [k for k, _ in groupby(row)]
        words.append("".join(ALPHABET[k] for k in merged if k))
    return words


def ctc(logp: Tensor, frames: Tensor, words: Sequence[str]) -> Tensor:
    targets = torch.tensor(sum(map(encode, words), []))
    return F.ctc_loss(
        logp.transpose(0, 1), targets, frames, torch.tensor([len(w) for w in words]), zero_infinity=True
    )


def train(batches: Sequence[Tuple[Sequence[int], Sequence[str]]]) -> Dict[str, Union[float, str]]:
    model = Recogniser()
    net = torch.compile(model, backend="eager", dynamic=True)
    opt = torch.optim.NAdam(model.parameters(), lr=5e-3)
    result: Dict[str, Union[float, str]] = {}
    for step, (lengths, words) in enumerate(batches):
        x, lens = collate(lengths)
        logp, table = net(x)
        frames = torch.div(lens + 1, 2, rounding_mode="floor")
        loss = ctc(logp, frames, words)
        opt.zero_grad()
        loss.backward()
        opt.step()
        result[f"loss{step}"] = loss.item()
        result["table"] = table
        print(f"step {step}: ctc {loss.item():.3f}, greedy {greedy(logp)}")
        print(indent(table, "    "))
    return result


if __name__ == "__main__":
    torch.manual_seed(5)
    train([((11, 8), ("abba", "cd")), ((14, 9), ("dab", "a"))])
