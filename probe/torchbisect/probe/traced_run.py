"""Run a script under plain ``python`` with torch's structured trace, and return that."""

from __future__ import annotations

import base64
import binascii
import threading
import zlib

from torchbisect.containers.environment import Environment
from torchbisect.core.repro import Files
from torchbisect.probe.standalone_run import check_disk, placed_script

# The most bytes of a trace; that of a shrunk script has less than one megabyte.
_MOST_BYTES = 32_000_000
_MARK = "torchbisect-trace:"
# Runs a script, and prints its trace: from a container nothing comes back but what is printed.
_TRACED = f"""\
import base64, glob, os, subprocess, sys, zlib
folder = os.path.abspath("trace")
variables = dict(os.environ, TORCH_TRACE=folder)
subprocess.run([sys.executable, *sys.argv[1:]], env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
text = b"".join(open(path, "rb").read() for path in sorted(glob.glob(os.path.join(folder, "*.log"))))
print("{_MARK}" + base64.b64encode(zlib.compress(text, 9)).decode())
"""


def trace_plain(
    environment: Environment,
    source: str,
    *,
    timeout: float,
    cancel: threading.Event | None = None,
    files: Files | None = None,
) -> str:
    """Return the trace (``TORCH_TRACE``) of a script; empty if this torch writes none or it can't be read.

    Raises ``DiskFull`` if there is no room for the script, and ``Cancelled`` when ``cancel`` is set.
    """
    with placed_script(environment, source, "minimal.py", files) as (folder, words, extra):
        done = environment.run(["-c", _TRACED, *words], timeout=timeout, directory=folder, extra=extra, cancel=cancel)
    check_disk(done)
    return _read(done.output.rpartition(_MARK)[2])


def _read(packed: str) -> str:
    try:
        return zlib.decompressobj().decompress(base64.b64decode(packed), _MOST_BYTES).decode("utf-8", "replace")
    except (binascii.Error, zlib.error, ValueError):
        return ""
