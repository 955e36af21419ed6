# torch: 2.8.0
"""Packs variable-length documents into fixed rows for a tiny language model and
serialises the packed batch in a compact binary record."""
import io
import struct
import textwrap
import zlib
from dataclasses import dataclass
from typing import Iterable, Iterator, List

import torch
import torch.nn as nn

TEXT = """
It was the best of times. It was the worst of times. It was the age of wisdom.
We had everything before us. We had nothing before us. In short the period was
so far like the present period. Some of its noisiest authorities insisted on it.
"""

INDEX_DTYPE = torch.int32


class ByteVocab:
    bos, eos, pad = 1, 2, 0
    offset = 3

    def __len__(self):
        return 128 + self.offset

    def encode(self, text: str) -> List[int]:
        return [self.bos, *(b + self.offset for b in text.encode("ascii")), self.eos]

    def decode(self, ids: Iterable[int]) -> str:
        return bytes(i - self.offset for i in ids if i >= self.offset).decode("ascii")


def sentences(text: str) -> Iterator[str]:
    for s in " ".join(text.split()).split("."):
        if s := s.strip():
            yield s + "."


@dataclass
class Packed:
    tokens: torch.Tensor
    segments: torch.Tensor

    @property
    def fill(self) -> float:
        return (self.segments > 0).float().mean().item()


def pack(docs: List[List[int]], width: int) -> Packed:
    """First-fit packing; segment ids start at 1 in each row."""
    rows: List[List[List[int]]] = []
    for doc in sorted(docs, key=len, reverse=True):
        doc = doc[:width]
        for row in rows:
            if sum(map(len, row)) + len(doc) <= width:
                row.append(doc)
                break
        else:
            rows.append([doc])
    tokens = torch.zeros(len(rows), width, dtype=torch.long)
    segments = torch.zeros(len(rows), width, dtype=INDEX_DTYPE)
    for r, row in enumerate(rows):
        at = 0
        for k, doc in enumerate(row, start=1):
            tokens[r, at:at + len(doc)] = torch.tensor(doc)
            segments[r, at:at + len(doc)] = k
            at += len(doc)
    return Packed(tokens, segments)


class PositionIndexer(nn.Module):
    """Position of every token within its own document."""

    def __init__(self, width: int):
        super().__init__()
        self.width = width

    def forward(self, segments: torch.Tensor) -> torch.Tensor:
        steps = torch.ones(self.width, dtype=INDEX_DTYPE, device=segments.device)
        running = steps.cumsum(0, dtype=INDEX_DTYPE) - 1
        same = segments.unsqueeze(2) == segments.unsqueeze(1)
        first = torch.where(same, running, running.new_full((), self.width)).amin(dim=2)
        return (running - first) * (segments > 0)


class TinyLM(nn.Module):
    def __init__(self, vocab: int, width: int, dim: int = 16):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Embedding(width, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, tokens, positions):
        h, _ = self.rnn(self.tok(tokens) + self.pos(positions))
        return self.out(h)


class RecordWriter:
    HEADER = struct.Struct("<4sII")

    def __init__(self):
        self.buffer = io.BytesIO()

    def write(self, tag: str, t: torch.Tensor) -> int:
        body = t.contiguous().numpy().tobytes()
        self.buffer.write(self.HEADER.pack(tag.encode(), t.numel(), zlib.crc32(body)))
        self.buffer.write(body)
        return len(body)


def main(width: int = 96):
    torch.manual_seed(0)
    vocab = ByteVocab()
    docs = [vocab.encode(s) for s in sentences(TEXT)]
    packed = pack(docs, width)
    print(f"{len(docs)} documents in {len(packed.tokens)} rows, fill {packed.fill:.1%}")

    indexer = torch.compile(PositionIndexer(width))
    positions = indexer(packed.segments)

    model = TinyLM(len(vocab), width)
    opt = torch.optim.AdamW(model.parameters(), lr=0.02)
    for step in range(6):
        logits = model(packed.tokens[:, :-1], positions[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), packed.tokens[:, 1:].flatten(), ignore_index=0)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"loss after {step + 1} steps {loss.item():.3f}")

    writer = RecordWriter()
    for tag, t in (("SEGS", packed.segments), ("POSN", positions)):
        n = writer.write(tag, t)
        print(f"{tag} {str(t.dtype):<12} {n} bytes, max {int(t.max())}")
    print("record size", len(writer.buffer.getvalue()))
    print(textwrap.shorten(vocab.decode(packed.tokens[0].tolist()), 60))


main()
