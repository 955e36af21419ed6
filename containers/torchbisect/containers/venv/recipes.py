"""What a build is installed with beside its own requirements: older releases forgot some of theirs.

- Up to 2.2, torch is compiled against numpy 1 and can't exchange arrays with numpy 2; it does not say so in its
  metadata.
- ``torch.utils.cpp_extension``, which inductor's C++ builder imports in older releases, imports ``pkg_resources``; in
  setuptools 70 its ``packaging`` moved away, and later all of it went. torch asks for setuptools, if at all,
  without an upper bound.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from torchbisect.containers.index.indexes import Indexes
from torchbisect.core.build import Build

#: Counted up with every change to what goes into an environment, so that older ones are not used any more.
RECIPE = 1


def environment_key(build: Build, abi: str, base: str, packages: Sequence[str], indexes: Indexes) -> str:
    """Return the name of a build's environment: the build, and a digest of all that decides the contents.

    Args:
        build: the build in it.
        abi: the tag of the Python's binary interface, such as ``cp311``.
        base: the identity of the Python or the image that the environment is made from.
        packages: what the user wants beside torch.
        indexes: where packages come from.
    """
    parts = [build.requirement, base, *packages, RECIPE, indexes.urls, indexes.find_links]
    digest = hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:10]
    return f"torch-{build.name}-{abi}-{digest}"


def requirements(build: Build, packages: tuple[str, ...] = ()) -> list[str]:
    """What the installer is told to put into an environment.

    Args:
        build: always pinned exactly; the installer must fail and not take a neighbour.
        packages: what the user wants beside it; a version of ``numpy`` or ``setuptools`` given here is joined to ours.
    """
    if build.minor < (2, 7):
        setuptools = "setuptools<70"
    elif build.minor < (2, 11):
        setuptools = "setuptools<81"
    else:
        setuptools = "setuptools"
    numpy = "numpy<2" if build.minor < (2, 3) else "numpy"
    return [build.requirement, setuptools, numpy, *packages]
