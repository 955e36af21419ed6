"""Every effect of a command on the machine, by kind and call site, and a fault at one of them.

The list comes from the interpreter's own audit events, not from wrappers around our code, so an effect that is added
tomorrow is in it. Only writing to an open file has no event: ``os.write``, ``os.fsync`` and ``os.ftruncate`` are
replaced by functions that report themselves.

``python effects.py SUBJECT FOLDER PLAN RESULT`` imports everything once, then forks for each run of the subject.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import importlib
import json
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

#: The audit events of effects, and the error that a fault raises there: as a full disk, a refusal or a limit would.
KINDS = {
    "open": errno.ENOSPC,
    "os.mkdir": errno.ENOSPC,
    "os.rename": errno.EIO,
    "os.link": errno.ENOSPC,
    "os.symlink": errno.ENOSPC,
    "os.remove": errno.EACCES,
    "os.rmdir": errno.EACCES,
    "os.chmod": errno.EACCES,
    "os.truncate": errno.ENOSPC,
    "os.utime": errno.EACCES,
    "fcntl.flock": errno.ENOLCK,
    "subprocess.Popen": errno.EAGAIN,
    "os.fork": errno.EAGAIN,
    "os.posix_spawn": errno.EAGAIN,
    "socket.connect": errno.ECONNREFUSED,
    "sqlite3.connect": errno.EIO,
    "os.write": errno.ENOSPC,
    "os.fsync": errno.EIO,
    "os.ftruncate": errno.EIO,
}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_SOURCES = f"{os.sep}torchbisect{os.sep}"


class Seam:
    """Notes each effect of this process, and makes the first one of a kind and site fail or end the process."""

    def __init__(self, target: tuple[str, str] | None, how: str, folder: Path) -> None:
        self.seen: dict[tuple[str, str], int] = {}
        self._target, self._how, self._folder = target, how, str(folder)
        self._inside = threading.local()

    def begin(self) -> None:
        """Watch this process until its end: an audit hook can't be removed."""
        for name in ("write", "fsync", "ftruncate"):
            setattr(os, name, self._reporting(f"os.{name}", getattr(os, name)))
        sys.addaudithook(self._hook)

    def _reporting(self, kind: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            self._effect(kind)
            return function(*arguments)

        return call

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in KINDS and not (event == "open" and not self._is_write(arguments)):
            self._effect(event)

    def _is_write(self, arguments: tuple[Any, ...]) -> bool:
        path, _, flags = arguments
        return isinstance(flags, int) and bool(flags & _WRITES) and not str(path).startswith(("/dev/", "/proc/"))

    def _effect(self, kind: str) -> None:
        if getattr(self._inside, "now", False):
            return
        self._inside.now = True
        try:
            site = _site(sys._getframe(2))
            first = (kind, site) not in self.seen
            self.seen[kind, site] = self.seen.get((kind, site), 0) + 1
        finally:
            self._inside.now = False
        if first and (kind, site) == self._target:
            if self._how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            raise OSError(KINDS[kind], os.strerror(KINDS[kind]))


def _site(frame: FrameType | None) -> str:
    """Return the two innermost functions of torchbisect on the way to an effect, with the line of the inner one."""
    found: list[str] = []
    while frame is not None and len(found) < 2:
        name = frame.f_code.co_filename
        if _SOURCES in name and "site-packages" not in name:
            line = "" if found else f":{frame.f_lineno}"
            found.append(f"{name.rpartition(_SOURCES)[2]}{line} {frame.f_code.co_name}")
        frame = frame.f_back
    return ", from ".join(found) or "elsewhere"


def forked(action: Callable[[], int], folder: Path, target: tuple[str, str] | None, how: str) -> dict[str, Any]:
    """Run an action in a fork whose temporary folder is ``folder/tmp``; return its status, errors and effects."""
    (folder / "tmp").mkdir(parents=True, exist_ok=True)
    said, noted = folder / "said.txt", folder / "effects.json"
    noted.unlink(missing_ok=True)
    child = os.fork()
    if not child:
        status = 70
        try:
            os.environ["TMPDIR"] = str(folder / "tmp")
            tempfile.tempdir = None
            output = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(output, 1)
            os.dup2(output, 2)
            seam = Seam(target, how, folder)
            seam.begin()
            try:
                status = action()
            except SystemExit as ended:
                status = ended.code if isinstance(ended.code, int) else 1
            except BaseException:
                # As the interpreter does.
                sys.excepthook(*sys.exc_info())
                status = 1
            with contextlib.suppress(BaseException):
                atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
            with open(noted, "w") as file:
                json.dump([[*place, count] for place, count in seam.seen.items()], file)
        finally:
            os._exit(status)
    _, ended = os.waitpid(child, 0)
    effects = json.loads(noted.read_text()) if noted.exists() else []
    return {
        "status": os.waitstatus_to_exitcode(ended),
        "said": said.read_text(errors="replace"),
        "effects": effects,
    }


def main(subject: str, folder: str, plan: str, result: str) -> None:
    """Run the subject as often as the plan says: for each fault once with it, and once more without."""
    place = Path(folder).resolve()
    action, state = importlib.import_module(subject).prepare(place)
    done = []
    for number, wanted in enumerate(json.loads(Path(plan).read_text())):
        here = place / f"run-{number}"
        here.mkdir()
        target = tuple(wanted["target"]) if wanted["target"] else None
        first = forked(lambda here=here: action(here), here, target, wanted["how"])
        between = state(here)
        after = forked(lambda here=here: action(here), here, None, "")
        done.append({**wanted, "first": first, "between": between, "after": after, "state": state(here)})
        Path(result).write_text(json.dumps(done))


if __name__ == "__main__":
    main(*sys.argv[1:])
