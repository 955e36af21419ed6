"""Write a report's files atomically, and read ``report.json`` back."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from torchbisect.core.decode import DecodeError, read_json
from torchbisect.core.errors import DiskFull, InputError, MachineError
from torchbisect.core.regular_file import read_regular_file
from torchbisect.core.scrub import scrub
from torchbisect.reports.model.report import Report
from torchbisect.reports.render import html, markdown
from torchbisect.reports.scrubbed import scrubbed

JSON, MARKDOWN, PAGE, MINIMAL = "report.json", "report.md", "report.html", "minimal.py"

#: Limit in bytes for reading. A report of a big run has less than one megabyte, but a file may come from a stranger.
MAX_BYTES = 64 * 2**20

# The names that ``replace_text`` gives to temporary files of reports and scripts; ``mkstemp`` chooses the middle.
_TEMPORARY = re.compile(r"\.(?:report\.(?:json|md|html)|minimal\.py|kernels-[\w.+-]+\.py|\d{4}\.py)\.[a-z0-9_]{8}\.tmp")


def write(report: Report, directory: Path) -> tuple[Path, ...]:
    """Write ``report.md``, ``report.html``, ``report.json`` and any ``minimal.py`` into ``directory``.

    Each file is written under a temporary name and then renamed. ``report.json`` is the last: a reader that finds it
    finds the others too. All but ``minimal.py`` are without secrets and paths of this machine; a ``minimal.py`` that
    is there already, and differs in these only, stays.

    Returns:
        The files written.

    Raises:
        DiskFull: the disk is full; older files stay as they were.
        InputError: the directory is not a directory, or it is not writable.
    """
    shown = scrubbed(report)
    texts = {MINIMAL: _script_to_keep(report.minimal.source, directory / MINIMAL)} if report.minimal else {}
    texts |= {MARKDOWN: markdown.render(shown), PAGE: html.render(shown), JSON: to_text(shown)}
    with _write_errors_explained(directory):
        directory.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        replace_text(directory / name, text)
    return tuple(directory / name for name in texts)


def _script_to_keep(source: str, file: Path) -> str:
    """Return the text of a script's file if ``source`` is a scrubbed copy of it, else ``source``."""
    with contextlib.suppress(OSError, ValueError):
        if file.stat().st_size <= MAX_BYTES and scrub(there := file.read_text(encoding="utf-8")) == source:
            return there
    return source


def to_text(report: Report) -> str:
    """Return the text of ``report.json``; it is ASCII only, so that no character in it can break a reader."""
    return json.dumps(report.to_json(), indent=2, allow_nan=False) + "\n"


def load(path: Path) -> Report:
    """Read a report.

    Args:
        path: a directory with a ``report.json``, or that file.

    Raises:
        InputError: there is no report, or it is malformed, or a newer torchbisect wrote it.
    """
    file = path / JSON if os.path.isdir(path) else path
    try:
        data = read_json(read_regular_file(file, MAX_BYTES))
    except FileNotFoundError:
        raise InputError(f"no report in {path}: there is no {JSON}; torchbisect run --out {path} writes one") from None
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from error
    except DecodeError as error:
        raise InputError(f"{file} is not a torchbisect report: {error}") from error
    try:
        return scrubbed(Report.from_json(data))
    except InputError as error:
        raise InputError(f"{file}: {error}") from error


def code_file(build: str) -> str:
    """Return the name of the file with the code that inductor generated on a build.

    >>> code_file("2.13.0+cpu")
    'kernels-2.13.0+cpu.py'
    """
    return f"kernels-{re.sub(r'[^0-9A-Za-z.+_-]', '-', build)}.py"


def replace_text(path: Path, text: str) -> None:
    """Write a text file atomically: a reader sees the old text or the new one, never a part.

    Raises:
        DiskFull: the disk is full; the old file stays as it was.
        InputError: the folder is not writable.
    """
    with _write_errors_explained(path.parent):
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


def remove_unfinished(directory: Path) -> None:
    """Remove the temporary files of ``replace_text`` that a killed process left in a folder that only this one uses."""
    for left in directory.glob(".*.tmp") if directory.is_dir() else ():
        # The folder may be the user's own, with temporary files of other programs.
        if _TEMPORARY.fullmatch(left.name):
            with contextlib.suppress(OSError):
                left.unlink()


def _umask() -> int:
    """Return the process's umask; the only way to read it is to set it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


@contextlib.contextmanager
def _write_errors_explained(directory: Path) -> Iterator[None]:
    """Turn an ``OSError`` of a write into an error that says what to do."""
    try:
        yield
    except (FileExistsError, NotADirectoryError):
        raise InputError(f"{directory} is not a directory: give --out another name") from None
    except PermissionError:
        raise InputError(f"{directory} is not writable: give --out a directory of your own") from None
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(
                f"no room in {directory} for the report: free some space, then run the same command again"
            ) from error
        raise MachineError(f"the report could not be written to {directory}: {error.strerror}") from error
