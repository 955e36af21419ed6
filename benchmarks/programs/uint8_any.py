# torch: 2.13.0
"""Packet pipeline: byte frames pass through filters built as a class hierarchy."""
import abc
import io
import struct
from functools import reduce

import torch


class Stage(abc.ABC):
    registry = {}

    def __init_subclass__(cls, **kw):
        super().__init_subclass__(**kw)
        Stage.registry[cls.__name__.lower()] = cls

    @abc.abstractmethod
    def __call__(self, frames):
        ...


class Mask(Stage):
    def __init__(self, keep=0x3F):
        self.keep = keep

    def __call__(self, frames):
        return frames & self.keep


class Delta(Stage):
    def __call__(self, frames):
        left = torch.nn.functional.pad(frames[:, :-1], (1, 0))
        return frames - left


class ParityTag(Stage):
    """Prepends a marker byte: 254 for frames with data, 255 for idle ones."""

    def __call__(self, frames):
        busy = frames.any(dim=1, keepdim=True)
        head = ~busy
        return torch.cat([head.to(torch.uint8), frames], dim=1)


class Checksum(Stage):
    def __init__(self, rounds=2):
        self.rounds = rounds

    def __call__(self, frames):
        acc = frames.to(torch.int64)
        for i in range(self.rounds):
            acc = (acc * (31 + i) + acc.roll(1, dims=1)) % 65521
        tail = acc.sum(1, keepdim=True) % 256
        return torch.cat([frames, tail.to(torch.uint8)], dim=1)


class Pipeline:
    def __init__(self, *names):
        self.stages = [Stage.registry[n]() for n in names]

    def __call__(self, frames):
        return reduce(lambda acc, stage: stage(acc), self.stages, frames)


def encode_stream():
    buf = io.BytesIO()
    for seq in range(4):
        payload = [0] * 6 if seq == 2 else [(seq * 37 + j * 11) % 256 for j in range(6)]
        buf.write(struct.pack("6B", *payload))
    return buf.getvalue()


def decode(blob, width=6):
    data = torch.tensor(list(blob), dtype=torch.uint8)
    return data.view(-1, width)


def hexdump(frames):
    return [bytes(row.tolist()).hex(" ") for row in frames]


def main():
    frames = decode(encode_stream())
    pipe = Pipeline("mask", "delta", "paritytag", "checksum")
    want = pipe(frames)
    got = torch.compile(pipe.__call__, backend="inductor")(frames)
    print("eager", *hexdump(want), sep="\n  ")
    print("compiled", *hexdump(got), sep="\n  ")
    assert hexdump(want) == hexdump(got), "frames differ"


if __name__ == "__main__":
    main()
