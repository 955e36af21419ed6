"""The entry of the ``torchbisect`` command; it imports little, so that the failure of an import has its exit code."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any, NoReturn

from torchbisect.core.command_line import run_command


def main() -> NoReturn:
    """Run the command that was typed, and end this process."""
    run_command(_commands)


def _commands() -> Any:
    with _starting():
        from torchbisect.cli.commands import main as commands

    return commands


# Seconds until the start is spoken of: on a terminal, and elsewhere.
_LIVE, _PLAIN = 0.7, 6.0


@contextlib.contextmanager
def _starting() -> Iterator[None]:
    """Say that the command starts, if that takes long: on a busy machine the imports do."""
    stream = sys.stderr
    if stream is None or "_TORCHBISECT_COMPLETE" in os.environ or {"-q", "--quiet"} & set(sys.argv):
        yield
        return
    live = stream.isatty() and os.environ.get("TERM") != "dumb"
    said, ended = "\r  … starting" if live else "  … starting\n", threading.Event()

    def speak() -> None:
        if not ended.wait(_LIVE if live else _PLAIN):
            with contextlib.suppress(OSError, ValueError):
                stream.write(said)
                stream.flush()
            if ended.wait() and live:
                with contextlib.suppress(OSError, ValueError):
                    stream.write("\r\x1b[K")
                    stream.flush()

    speaker = threading.Thread(target=speak, daemon=True)
    speaker.start()
    try:
        yield
    finally:
        ended.set()
        speaker.join()


if __name__ == "__main__":
    main()
