"""Run a command so that every exception ends as one line and an exit code of its own.

Python ends a program with status 1 after an exception that nobody catches, and so does click after an interrupt or a
closed pipe. Here 1 is an answer: no mismatch. So everything that a command raises is caught here, and nothing but an
answer ends with the status of one.
"""

from __future__ import annotations

import contextlib
import contextvars
import datetime
import errno
import json
import os
import re
import signal
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import click
import platformdirs

from torchbisect.core.errors import Exit, TorchbisectError
from torchbisect.core.open_files import allow_open_files
from torchbisect.core.printable import one_line
from torchbisect.core.scrub import scrub

_LINE = 4000
_LONG_WORD = re.compile(r"(\S{80})\S{920,}")
_COMPLETION = "_TORCHBISECT_COMPLETE"
_JSON_ASKED = contextvars.ContextVar("json asked for", default=False)
_LOG_CHARACTERS = 1_000_000
_LOGS_KEPT = 20
_FULL = (errno.ENOSPC, errno.EDQUOT)
_TOO_MANY_FILES = (errno.EMFILE, errno.ENFILE)


class Program(click.Group):
    """A group of commands that ends its process as ``run_command`` says."""

    def main(self, args: Any = None, prog_name: Any = None, *, standalone_mode: bool = True, **extra: Any) -> Any:  # type: ignore[override]
        """Run the command; with ``standalone_mode`` end this process."""
        if standalone_mode:
            run_command(lambda: self, args, prog_name=prog_name, **extra)
        return super().main(args, prog_name, standalone_mode=False, **extra)


def run_command(load: Callable[[], Any], arguments: Sequence[str] | None = None, **extra: Any) -> NoReturn:
    """Run a click command and end this process.

    Args:
        load: returns the command; it imports what the command needs, since an import may fail too.
        arguments: the command line without the program's name; by default this process's own.
        extra: further arguments of the command's ``main``.
    """
    _open_closed_streams()
    threading.excepthook = _thread_failed
    # A warning of Python's parser shows a line of the script as it is, with its terminal sequences.
    warnings.filterwarnings("ignore", category=SyntaxWarning)
    words = list(sys.argv[1:] if arguments is None else arguments)
    typed = words[: words.index("--")] if "--" in words else words
    _JSON_ASKED.set("--json" in typed)
    with _signals_as_interrupts():
        status = _status(load, arguments, extra)
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except (OSError, ValueError) as error:
        status = _output_failed(error)
    sys.exit(int(status))


def expect_json() -> None:
    """Write an error to standard output as JSON too, for a program that reads it there."""
    _JSON_ASKED.set(True)


@contextlib.contextmanager
def _signals_as_interrupts() -> Iterator[None]:
    """Take a request to end (``kill``, ``timeout``, a closed terminal) like Ctrl-C, so that the results are kept.

    One that is ignored, as after ``nohup``, stays so.
    """
    requests = (signal.SIGTERM, signal.SIGHUP)
    taken = [number for number in requests if signal.getsignal(number) == signal.SIG_DFL]
    for number in taken:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def _status(load: Callable[[], Any], arguments: Sequence[str] | None, extra: dict[str, Any]) -> int:
    try:
        allow_open_files()
        try:
            status = load().main(arguments, standalone_mode=False, **extra)
        except Exception as error:
            clicks = _click_status(error)
            if clicks is None:
                raise
            status = clicks
        return Exit.FINISHED if status is None else Exit(status)
    except TorchbisectError as error:
        say(str(error))
        _say_json(str(error), error.exit_code)
        return error.exit_code
    except KeyboardInterrupt:
        say("interrupted")
        return Exit.INTERRUPTED
    except BrokenPipeError as error:
        return _output_failed(error)
    except SystemExit as error:
        # A shell's completion, which click writes before any command, ends so.
        return Exit.FINISHED if _COMPLETION in os.environ else crash(error)
    except BaseException as error:
        if isinstance(error, OSError) and error.errno in _FULL and error.filename is None and _output_is_full():
            return _output_failed(error)
        return crash(error)


def _click_status(error: Exception) -> int | None:
    """Show an error of click, and return its exit code; ``None`` for any other error."""
    if isinstance(error, click.Abort):
        raise KeyboardInterrupt from error
    if not isinstance(error, click.ClickException):
        return None
    if isinstance(error, click.UsageError) and type(error).__name__ == "NoArgsIsHelpError":
        error.show()
    else:
        context = error.ctx if isinstance(error, click.UsageError) else None
        text = error.format_message().rstrip(".")
        glue = " See" if text.endswith("?") else "; see"
        say(f"{text}{glue} {context.command_path} --help" if context is not None else text)
        _say_json(text, Exit.INPUT)
    return Exit.INPUT


def say(text: str, label: str = "torchbisect: ") -> None:
    """Write one line about the command to standard error, whatever characters the text has."""
    with contextlib.suppress(Exception):
        sys.stderr.write(f"{label}{_short_line(text)}\n")
        sys.stderr.flush()


def _short_line(text: str) -> str:
    """Return a message as one line without secrets; a word of thousands of letters is cut off."""
    return _LONG_WORD.sub(r"\1…", one_line(scrub(text), _LINE))


def _say_json(text: str, code: Exit) -> None:
    """Write an error to standard output as well, for a program that asked for JSON there."""
    if _JSON_ASKED.get():
        print(json.dumps({"error": _short_line(text), "exit_code": int(code)}, indent=2))


def crash(error: BaseException) -> Exit:
    """Say in one line that torchbisect itself failed and where the details are, and return the exit code."""
    try:
        said = one_line(str(error), 200)
    except Exception:
        said = ""
    name = f"{type(error).__name__}: {said}" if said else type(error).__name__
    if isinstance(error, MemoryError):
        say(
            "this machine has too little memory left (MemoryError): end other programs, then run the same command again"
        )
        return Exit.MACHINE
    if isinstance(error, OSError) and error.errno in _TOO_MANY_FILES:
        say(f"this machine lets no more files be opened ({said}): raise the limit (ulimit -n 4096), then run it again")
        return Exit.MACHINE
    place = _write_log(error)
    details = f"report it with {place}, which has the details" if place else "no file could be written for its details"
    say(f"a fault of torchbisect itself ({name}): {details}; the same command continues")
    return Exit.MACHINE


def _write_log(error: BaseException) -> Path | None:
    """Write the traceback without secrets into the cache's folder of logs, else into the temporary one."""
    try:
        text = scrub("".join(traceback.format_exception(error))[-_LOG_CHARACTERS:])
    except Exception:
        text = f"{type(error).__name__}\n"
    name = f"crash-{datetime.datetime.now():%Y%m%d-%H%M%S}-{os.getpid()}.txt"
    for folder in (_log_folder, lambda: Path(tempfile.gettempdir())):
        with contextlib.suppress(Exception):
            place = folder() / name
            place.write_text(text, encoding="utf-8", errors="backslashreplace")
            for old in sorted(place.parent.glob("crash-*-*-*.txt"))[:-_LOGS_KEPT]:
                old.unlink()
            return place
    return None


def _log_folder() -> Path:
    cache = os.environ.get("TORCHBISECT_CACHE_DIR") or platformdirs.user_cache_path("torchbisect")
    folder = Path(cache).expanduser().absolute() / "log"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _thread_failed(failure: threading.ExceptHookArgs) -> None:
    if failure.exc_value is not None and not isinstance(failure.exc_value, SystemExit):
        crash(failure.exc_value)


def _open_closed_streams() -> None:
    """Open what the caller closed: else a file of ours would get the number of a standard stream."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _output_is_full() -> bool:
    """Return true if standard output takes nothing more: ``/dev/full``, or a file on a full disk."""
    try:
        os.write(1, b"")
        return os.fstatvfs(1).f_bavail == 0
    except OSError:
        return True


def _output_failed(error: Exception) -> Exit:
    """Say that standard output can't be written to, and turn it off; else Python would fail once more at its end."""
    number = error.errno if isinstance(error, OSError) else None
    if number != errno.EPIPE:  # the reader of a pipe (a pager, head) has what it wanted
        reason = os.strerror(number) if number else str(error)
        say(f"standard output can't be written to ({reason}): send it to another place; results in files are complete")
    with contextlib.suppress(OSError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
    return Exit.MACHINE
