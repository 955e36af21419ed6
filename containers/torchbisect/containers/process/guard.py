"""Guard: a small process that outlives this one, however it ends, and then removes what it left.

A killed run can't clean up. The guard holds the reading end of a pipe whose writing end only this process has, so the
system itself reports the end. It then calls ``torchbisect.containers.leftovers.sweep`` in a process of its own
session, which no signal to the run's group or terminal reaches.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import subprocess
import sys
import threading

#: Told to the guard by a run that ends by itself and has removed everything.
_ALL_IS_REMOVED = b"."

# It imports torchbisect only after the run's end, because most runs end by themselves.
_SCRIPT = """
import json, os, sys
if os.fork():
    os._exit(0)
os.setsid()
said = b""
while data := os.read(0, 64):
    said += data
if not said:
    sys.path[:] = json.loads(sys.argv[1])
    from torchbisect.containers.leftovers import sweep
    sweep(engine_rounds=3)
"""

_lock = threading.Lock()
_pipes: dict[int, int] = {}


def start_guard(hidden: str) -> None:
    """Start this process's guard unless it has one; ``hidden`` is the variable that it must not inherit.

    A guard that can't be started is done without: then the next command removes what a killed run leaves.
    """
    with _lock:
        if os.getpid() in _pipes:
            return
        reader, writer = os.pipe()
        _pipes[os.getpid()] = writer
        path = json.dumps([os.path.abspath(place) for place in sys.path if place])
        try:
            with contextlib.suppress(OSError):
                subprocess.run(
                    [sys.executable, "-I", "-S", "-c", _SCRIPT, path],
                    stdin=reader,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd="/",
                    env={name: value for name, value in os.environ.items() if name != hidden},
                    start_new_session=True,
                    check=False,
                )
        finally:
            os.close(reader)
        atexit.register(_dismiss, os.getpid())


def _dismiss(pid: int) -> None:
    """Let the guard of this process end, at the end of a process that was not killed."""
    writer = _pipes.pop(pid, None)
    if writer is not None and pid == os.getpid():
        with contextlib.suppress(OSError):
            os.write(writer, _ALL_IS_REMOVED)
            os.close(writer)
