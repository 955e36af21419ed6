"""A wheel that is assembled from files on disk when it is read."""

from __future__ import annotations

import base64
import hashlib
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path


class VirtualFile:
    """A file that is assembled from bytes and from files on disk when it is read."""

    def __init__(self, parts: list[bytes | tuple[Path, int]]) -> None:
        self.parts = parts
        self.ends = list(accumulate(len(part) if isinstance(part, bytes) else part[1] for part in parts))

    @property
    def size(self) -> int:
        return self.ends[-1]

    def chunks(self, start: int, stop: int) -> Iterator[bytes]:
        """Yield the bytes from ``start`` to ``stop``, in pieces."""
        begin = 0
        for part, end in zip(self.parts, self.ends):
            low, high = max(start, begin) - begin, min(stop, end) - begin
            if low < high:
                if isinstance(part, bytes):
                    yield part[low:high]
                else:
                    with open(part[0], "rb") as file:
                        file.seek(low)
                        left = high - low
                        while left and (block := file.read(min(left, 1 << 20))):
                            left -= len(block)
                            yield block
            begin = end


@dataclass(frozen=True)
class WheelMember:
    """A file of a wheel; ``contents`` are its bytes, or the path of the file that has them."""

    name: str
    crc: int
    size: int
    digest: str
    contents: bytes | Path

    @classmethod
    def of(cls, name: str, contents: bytes | Path) -> WheelMember:
        data = contents if isinstance(contents, bytes) else contents.read_bytes()
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        return cls(name, zlib.crc32(data), len(data), digest, contents)

    @property
    def stored(self) -> tuple[int, int, bytes | tuple[Path, int]]:
        """The method of compression, the size in the archive, and what lies there."""
        if self.name.endswith((".py", ".pyi")):
            deflated = _deflated(self.contents)
            return zipfile.ZIP_DEFLATED, len(deflated), deflated
        return (
            zipfile.ZIP_STORED,
            self.size,
            self.contents if isinstance(self.contents, bytes) else (self.contents, self.size),
        )


@cache
def _deflated(contents: bytes | Path) -> bytes:
    """Return the bytes of a file as a zip archive has them with compression."""
    compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    data = contents if isinstance(contents, bytes) else contents.read_bytes()
    return compressor.compress(data) + compressor.flush()


def zip_archive(members: list[WheelMember]) -> VirtualFile:
    """Return a zip archive of these files."""
    parts: list[bytes | tuple[Path, int]] = []
    directory: list[bytes] = []
    offset = 0
    for member in members:
        name = member.name.encode()
        method, size, contents = member.stored
        times = (0, 0x5821)
        common = struct.pack("<HHHHHIIIHH", 20, 0x800, method, *times, member.crc, size, member.size, len(name), 0)
        header = b"PK\x03\x04" + common + name
        rights = (0o755 if "/bin/" in member.name else 0o644) << 16
        directory.append(
            b"PK\x01\x02"
            + struct.pack("<H", 0x0314)
            + common
            + struct.pack("<HHHII", 0, 0, 0, rights | 0x80000000, offset)
            + name
        )
        parts += [header, contents]
        offset += len(header) + size
    listing = b"".join(directory)
    parts.append(listing)
    parts.append(struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, len(members), len(members), len(listing), offset, 0))
    return VirtualFile(parts)
