"""Size of a build on the network and on disk, where no index tells it."""

from __future__ import annotations

from dataclasses import dataclass

from packaging.version import Version

from torchbisect.core.build import Build


@dataclass(frozen=True)
class Footprint:
    """The size of one build, in bytes: of its wheel, and of the files in it.

    Attributes:
        shared_download: the wheels of its dependencies, fetched once for all builds that need the same.
        shared_installed: the files of these dependencies, hard-linked between environments.
    """

    download: int
    installed: int
    shared_download: int
    shared_installed: int


#: Measured on 2.13.0+cpu and on 2.8.0 as the public index has it (CUDA 12.8), Linux x86_64.
CPU = Footprint(190_000_000, 720_000_000, 35_000_000, 130_000_000)
CUDA = Footprint(890_000_000, 1_660_000_000, 2_700_000_000, 4_900_000_000)


def footprint(variant: str | None) -> Footprint:
    """Return the size of a variant's builds; without a variant that of CUDA, as on the public index for Linux."""
    return CPU if variant == "cpu" else CUDA


def footprint_of(build: Build) -> Footprint:
    """Return the size of a build, by the variant in its version."""
    return footprint(Version(build.version).local)
