# torch: 2.8.0
"""Parses flat records (header followed by payload) into features, several records a frame."""
import itertools
import random
import torch
from torch import nn


class Record:
    def __init__(self, kind, version, payload):
        self.kind, self.version, self.payload = kind, version, payload

    def encode(self):
        return [self.kind, self.version, len(self.payload), *self.payload]


def random_frame(rng, n):
    frame = []
    for _ in range(n):
        payload = [round(rng.uniform(-1, 1), 3) for _ in range(rng.randint(1, 4))]
        frame.extend(Record(rng.randint(0, 2), 1, payload).encode())
    return frame


def split_header(stream, width=3):
    return tuple(itertools.islice(stream, width))


def parse(frame):
    """Yields (kind, values) for every record."""
    pos = 0
    while pos < len(frame):
        rest = iter(frame[pos:])
        kind, version, size = split_header(rest)
        if version != 1:
            raise ValueError("unsupported version")
        body = [v for _, v in zip(range(int(size)), rest)]
        yield int(kind), body
        pos += 3 + int(size)


class FrameEncoder(nn.Module):
    def __init__(self, kinds=3, dim=5):
        super().__init__()
        g = torch.Generator().manual_seed(kinds)
        self.table = nn.ParameterList(nn.Parameter(torch.randn(dim, generator=g)) for _ in range(kinds))
        self.gain = nn.Parameter(torch.ones(dim))

    def encode_record(self, base, kind, values):
        acc = base
        for k, v in enumerate(values):
            acc = acc + self.table[kind] * (v / (k + 1))
        return torch.tanh(acc * self.gain)

    def forward(self, base, frame):
        rows = []
        for kind, values in parse(frame):
            rows.append(self.encode_record(base, kind, values))
        return torch.stack(rows)


class Loss:
    def __init__(self, target):
        self.target = target

    def __call__(self, rows):
        return (rows.mean(0) - self.target).abs().sum()


def run(encoder, frames, target):
    base = torch.zeros(5)
    loss = Loss(target)
    report = []
    for frame in frames:
        rows = encoder(base, frame)
        report.append((tuple(rows.shape), loss(rows).item()))
    return report


def main():
    rng = random.Random(4)
    frames = [random_frame(rng, n) for n in (1, 2, 3)]
    enc = FrameEncoder()
    target = torch.linspace(0, 1, 5)
    with torch.no_grad():
        ref = run(enc, frames, target)
        got = run(torch.compile(enc, backend="eager", dynamic=False), frames, target)
    for i, ((s1, l1), (s2, l2)) in enumerate(zip(ref, got)):
        print(f"frame {i}: eager {s1} loss {l1:.5f}  compiled {s2} loss {l2:.5f}")
    for (s1, l1), (s2, l2) in zip(ref, got):
        assert s1 == s2 and abs(l1 - l2) < 1e-4, "frame encodings differ"


if __name__ == "__main__":
    main()
