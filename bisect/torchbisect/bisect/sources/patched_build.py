"""A build with a patch in its Python files: a copy that lasts as long as its questions."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from torchbisect.bisect.sources.patch import Patch, apply_patch
from torchbisect.containers.environment import Environment, Environments
from torchbisect.core.build import Build
from torchbisect.core.errors import InstallFailed

_LARGEST_FILE = 8_000_000
_READ = """
import base64, importlib.util, os, sys, zlib
root = os.path.dirname(os.path.dirname(importlib.util.find_spec("torch").origin))
path = os.path.join(root, sys.argv[1])
print("file:", base64.b64encode(zlib.compress(open(path, "rb").read())).decode() if os.path.isfile(path) else "none")
"""


@contextmanager
def patched_build(
    environments: Environments, build: Build, base: Environment, patch: Patch, *, reverse: bool
) -> Iterator[tuple[Environment, tuple[str, ...]]]:
    """Give a copy of an environment with a patch applied or reverted, and the paths of the files that differ.

    Args:
        environments: makes the copy.
        base: the environment of the build as it is, leased by the caller.
        reverse: take the patch back.

    Raise the errors of ``patched_layer`` and those of ``Environments.with_overlay``.
    """
    layer = patched_layer(base, patch, reverse=reverse)
    identity = patch.digest[::-1] if reverse else patch.digest
    with environments.with_overlay(build, layer, identity) as patched:
        yield patched, tuple(sorted(layer))


def patched_layer(base: Environment, patch: Patch, *, reverse: bool) -> dict[str, bytes | None]:
    """Return the files of an installation that a patch changes, as it leaves them.

    Raises:
        InstallFailed: ``needs-build`` if it changes compiled code, ``no-python`` if it changes nothing that an
            installation has, ``patch-does-not-apply`` if its lines are not there.
    """
    if patch.native:
        raise InstallFailed(
            "needs-build", f"it changes compiled code ({', '.join(patch.native[:3])}), which a wheel can't show"
        )
    if not patch.python:
        raise InstallFailed("no-python", "it changes no file that an installed torch has")
    originals = {path: text for path in patch.python if (text := _installed_file(base, path)) is not None}
    return apply_patch(patch, originals, reverse=reverse)


def _installed_file(base: Environment, path: str) -> bytes | None:
    done = base.run(["-c", _READ, path], timeout=300)
    kind, _, text = done.output.strip().rpartition("\n")[2].partition(" ")
    if done.status != 0 or kind != "file:":
        raise InstallFailed("broken-environment", f"{path} can't be read from torch {base.build}")
    if text == "none":
        return None
    try:
        return zlib.decompressobj().decompress(base64.b64decode(text, validate=True), _LARGEST_FILE)
    except (binascii.Error, zlib.error) as error:
        raise InstallFailed("broken-environment", f"{path} can't be read from torch {base.build}: {error}") from error
