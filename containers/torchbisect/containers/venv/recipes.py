"""Packages installed beside a build's own requirements, since older releases don't declare all of theirs.

Up to 2.2, torch is compiled against numpy 1 and can't exchange arrays with numpy 2. Its metadata do not say so.

Older releases of inductor import ``torch.utils.cpp_extension``, and that imports ``pkg_resources``. setuptools 70 moved
the ``packaging`` in it, and later versions removed it. torch requires setuptools without an upper bound, if at all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from torchbisect.containers.index.indexes import Indexes
from torchbisect.core.build import Build

#: Raised with every change to the contents of environments, so that older ones are not used any more.
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
    """Return the requirements of an environment.

    Args:
        build: always pinned exactly, so that the installer fails and does not take another build.
        packages: the user's requirements; versions of ``numpy`` or ``setuptools`` in them are combined with ours.
    """
    if build.minor < (2, 7):
        setuptools = "setuptools<70"
    elif build.minor < (2, 11):
        setuptools = "setuptools<81"
    else:
        setuptools = "setuptools"
    numpy = "numpy<2" if build.minor < (2, 3) else "numpy"
    return [build.requirement, setuptools, numpy, *packages]
