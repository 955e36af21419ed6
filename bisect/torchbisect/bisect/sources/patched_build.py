"""A build with a patch in its Python files: a copy that lasts as long as its questions."""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from torchbisect.bisect.sources.patch import Patch, apply_patch
from torchbisect.containers.environment import Environment, Environments, Process
from torchbisect.containers.process.processes import LineTooLong
from torchbisect.core.build import Build
from torchbisect.core.errors import InstallFailed

_LARGEST_FILE = 8_000_000
_READ_SECONDS = 300.0
# Answers each line, a path as JSON, with a line.
_READ = """
import base64, importlib.util, json, os, sys, zlib
root = os.path.dirname(os.path.dirname(importlib.util.find_spec("torch").origin))
for line in sys.stdin:
    path = os.path.join(root, json.loads(line))
    text = open(path, "rb").read() if os.path.isfile(path) else None
    print("none" if text is None else "file:" + base64.b64encode(zlib.compress(text)).decode(), flush=True)
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
    return apply_patch(patch, _installed_files(base, patch.python), reverse=reverse)


def _installed_files(base: Environment, paths: Sequence[str]) -> dict[str, bytes]:
    """Return the files that an installation has, read by one process of it."""
    process = base.start(["-c", _READ])
    try:
        return {path: text for path in paths if (text := _installed_file(process, path)) is not None}
    except (BrokenPipeError, LineTooLong, binascii.Error, zlib.error) as error:
        raise InstallFailed("broken-environment", f"a file can't be read from torch {base.build}: {error}") from error
    finally:
        process.kill()


def _installed_file(process: Process, path: str) -> bytes | None:
    process.send(json.dumps(path).encode("ascii") + b"\n")
    kind, _, text = (process.read_line(_READ_SECONDS) or b"").strip().partition(b":")
    if kind == b"none":
        return None
    if kind != b"file":
        raise BrokenPipeError(f"no answer about {path}")
    return zlib.decompressobj().decompress(base64.b64decode(text, validate=True), _LARGEST_FILE)
