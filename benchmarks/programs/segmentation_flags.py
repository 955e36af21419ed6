"""Per-tile quality flags of byte-valued segmentation masks."""
import struct
import textwrap
from typing import Callable, Iterator, List, TypeVar

import torch

T = TypeVar("T")


class Compose(List[Callable[[T], T]]):
    def __call__(self, value: T) -> T:
        for fn in self:
            value = fn(value)
        return value


def erode(mask: torch.Tensor) -> torch.Tensor:
    core = mask.clone()
    core[..., 0] = 0
    core[..., -1] = 0
    return core


def binarize(level: int) -> Callable[[torch.Tensor], torch.Tensor]:
    def apply(mask: torch.Tensor) -> torch.Tensor:
        return (mask > level).to(torch.uint8)

    return apply


def tiles(mask: torch.Tensor, size: int) -> torch.Tensor:
    h, w = mask.shape
    t = mask.view(h // size, size, w // size, size)
    return t.permute(0, 2, 1, 3).reshape(-1, size * size)


class TileFlags:
    """Byte flags: how many classes touch every tile."""

    def __init__(self, classes: int, size: int = 4):
        self.classes = classes
        self.size = size
        self.prep = Compose([binarize(0), erode])

    def one(self, mask: torch.Tensor) -> torch.Tensor:
        return torch.any(tiles(self.prep(mask), self.size), dim=1)

    def __call__(self, masks: torch.Tensor) -> torch.Tensor:
        flags = self.one(masks[0])
        for c in range(1, self.classes):
            flags = flags + self.one(masks[c])
        return flags


class Header:
    fmt = "<HH"

    @staticmethod
    def pack(flags: torch.Tensor) -> bytes:
        head = struct.pack(Header.fmt, flags.numel(), flags.element_size())
        return head + bytes(flags.tolist())

    @staticmethod
    def unpack(blob: bytes) -> List[int]:
        n, _ = struct.unpack_from(Header.fmt, blob)
        return list(blob[struct.calcsize(Header.fmt):][:n])


def scenes(n: int, classes: int) -> Iterator[torch.Tensor]:
    for k in range(n):
        m = torch.zeros(classes, 8, 8, dtype=torch.uint8)
        for c in range(classes):
            m[c, k:k + 3, c:c + 4] = 200 + c
        yield m


counter = TileFlags(classes=3)
fast = torch.compile(counter.__call__)

for scene in scenes(2, counter.classes):
    want = Header.unpack(Header.pack(counter(scene)))
    got = Header.unpack(Header.pack(fast(scene)))
    print(textwrap.indent(f"eager    {want}\ncompiled {got}", "  "))
    assert want == got, "touch counts differ"
