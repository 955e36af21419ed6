"""A report's files: written whole or not at all, and read again."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from torchbisect.core.errors import DiskFull, InputError, MachineError
from torchbisect.reports.escape import one_line
from torchbisect.reports.model.report import Report
from torchbisect.reports.render import html, markdown

JSON, MARKDOWN, PAGE, MINIMAL = "report.json", "report.md", "report.html", "minimal.py"

#: A report of a big run has less than one megabyte; what is read may come from a stranger.
LARGEST = 64 * 2**20


def write(report: Report, directory: Path) -> tuple[Path, ...]:
    """Write ``minimal.py`` (where there is one), ``report.md``, ``report.html`` and ``report.json`` into ``directory``.

    Each file is written under a temporary name and renamed, ``report.json`` last: whoever finds it finds the others.

    Returns:
        the files written.

    Raises:
        DiskFull: there is no room; what stood there before still does.
        InputError: the directory is no directory, or may not be written to.
    """
    texts = {MINIMAL: report.minimal.source} if report.minimal else {}
    texts |= {MARKDOWN: markdown.render(report), PAGE: html.render(report), JSON: to_text(report)}
    with _reported(directory):
        directory.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        replace_text(directory / name, text)
    return tuple(directory / name for name in texts)


def to_text(report: Report) -> str:
    """The report as the text of ``report.json``; ASCII only, so that no text in it can break a reader."""
    return json.dumps(report.to_json(), indent=2, allow_nan=False) + "\n"


def load(place: Path) -> Report:
    """Read a report back.

    Args:
        place: a directory that holds ``report.json``, or that file.

    Raises:
        InputError: there is none, or it is broken, or a newer torchbisect wrote it.
    """
    path = place / JSON if place.is_dir() else place
    try:
        if path.stat().st_size > LARGEST:
            raise InputError(f"{path} has {path.stat().st_size} bytes: no torchbisect report is larger than {LARGEST}")
        data = json.loads(path.read_bytes().decode("utf-8"))
    except FileNotFoundError:
        raise InputError(f"no report in {place}: there is no {JSON}; torchbisect run --out {place} makes one") from None
    except OSError as error:
        raise InputError(f"{path} can't be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not a torchbisect report: {one_line(str(error), 120)}") from error
    try:
        return Report.from_json(data)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def replace_text(path: Path, text: str) -> None:
    """Put a text where ``path`` is, all of it or nothing.

    Raises:
        DiskFull: there is no room; what stood there before still does.
        InputError: the folder may not be written to.
    """
    with _reported(path.parent):
        _replace(path, text)


def _replace(path: Path, text: str) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with open(descriptor, "wb") as file:
            file.write(text.encode("utf-8", "backslashreplace"))
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _umask() -> int:
    """The process's umask; there is no way to read it but to set it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


@contextlib.contextmanager
def _reported(directory: Path) -> Iterator[None]:
    """What goes wrong while writing, as an error that says what to do."""
    try:
        yield
    except (FileExistsError, NotADirectoryError):
        raise InputError(f"{directory} is not a directory: give --out another name") from None
    except PermissionError:
        raise InputError(f"{directory} can't be written to: give --out a directory of your own") from None
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(
                f"no room in {directory} for the report: free some, then run the same command again"
            ) from error
        raise MachineError(f"the report could not be written to {directory}: {error.strerror}") from error
