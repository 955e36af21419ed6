"""Reading of files whose names come from a user: regular ones only, and not more than a limit."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from torchbisect.core.errors import InputError


def open_own_file(path: Path, flags: int, mode: int = 0o666) -> int:
    """Open a file that torchbisect itself writes, made if it isn't there; return its descriptor.

    A folder from a stranger may bring a link, a pipe or a device under that name, which would lead to another file or
    never answer. ``flags`` are those of ``os.open``, for writing.

    Raises:
        InputError: something else than a regular file has that name.
        OSError: it can't be opened or made.
    """
    try:
        descriptor = os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.ENODEV):
            raise _not_its_own(path) from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _not_its_own(path)
    return descriptor


def _not_its_own(path: Path) -> InputError:
    return InputError(
        f"{path} is a link, a pipe or a device, which is never written to: remove it, or name another folder"
    )


def read_regular_file(path: Path, limit: int) -> bytes:
    """Return the bytes of a file. A pipe or a device, which could block or never end, is not read.

    Raises:
        InputError: it is no regular file, or it has more bytes than ``limit``.
        OSError: it does not exist or can't be read.
    """
    if "\0" in str(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENODEV):
            raise InputError(f"{path} is a socket or a device: name a regular file") from error
        raise
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        kind = "folder" if stat.S_ISDIR(mode) else "device or a pipe"
        raise InputError(f"{path} is a {kind}: name a regular file")
    with open(descriptor, "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise InputError(f"{path} has more than {limit / 1e6:.0f} MB, which is the limit: is it the right file?")
    return data
