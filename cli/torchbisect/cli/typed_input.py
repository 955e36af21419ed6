"""Read standard input once, for a script that reads it too."""

from __future__ import annotations

import sys
from dataclasses import replace

from torchbisect.containers.store.disk import format_bytes
from torchbisect.core.errors import InputError
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.progress import Display
from torchbisect.pipeline.script import open_script
from torchbisect.pipeline.typed_input import MOST_BYTES, reads_input
from torchbisect.probe.module_sources import siblings


def with_typed_input(options: Options) -> Options:
    """Return the options with the data on standard input, if the script reads them and there are any to read.

    A terminal is not read: nobody types the same for every run.

    Raises:
        InputError: the script can't be used, or there are too many data.
    """
    if options.script is None or str(options.script) == "-" or options.test is not None:
        return options
    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        return options
    script = open_script(options)
    texts = (script.source, *siblings(script.source, str(script.place.search)).values())
    if not reads_input(texts, options.arguments):
        return options
    with Display(options.verbosity).working("Reading standard input, as the script does"):
        try:
            data = sys.stdin.buffer.read(MOST_BYTES + 1)
        except OSError as error:
            raise InputError(f"standard input, which the script reads, can't be read: {error.strerror}") from error
    if len(data) > MOST_BYTES:
        raise InputError(
            f"the script reads standard input, which has more than {format_bytes(MOST_BYTES)}: give it less"
        )
    return replace(options, typed_input=data)
