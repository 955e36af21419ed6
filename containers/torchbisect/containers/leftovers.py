"""Removal of everything that dead runs left on this machine: processes, temporary folders and containers.

Each thing says who made it. A process carries a mark, a container a label: the boot of the machine, the process and
its start time. A folder has a lock. So nothing of a living run is removed, however old it is.
"""

from __future__ import annotations

import contextlib
import functools
import time

from torchbisect.containers.process.processes import sweep_processes
from torchbisect.containers.store.run_folder import sweep_run_folders
from torchbisect.core.decode import DecodeError, decode, read_object
from torchbisect.core.errors import TorchbisectError

#: Seconds that a dead run's processes get to be found: those of a dead worker are known only after its own death.
_PATIENCE = 10.0
#: Seconds for a connection to an engine that only a dead run needed.
_ENGINE_TIMEOUT = 5
_BETWEEN_ROUNDS = 4.0


def sweep(engine_rounds: int = 1) -> None:
    """Remove what dead runs left; what can't be removed now is left for the next command.

    ``engine_rounds`` looks are taken at each engine that a dead run used: one that died a moment ago may have asked for
    a container that is still being made.
    """
    until = time.monotonic() + _PATIENCE
    with contextlib.suppress(OSError):
        while sweep_processes() and time.monotonic() < until:
            pass
    with contextlib.suppress(TorchbisectError, OSError):
        sweep_run_folders(functools.partial(_sweep_engine, rounds=engine_rounds))


def sweep_engine(variables: dict[str, str] | None = None) -> None:
    """Remove dead runs' containers from an engine; do nothing if it doesn't answer.

    ``variables`` name the engine, by default those of this process.
    """
    # Imported late: only runs in containers need it, and it takes longer than the rest.
    from torchbisect.containers.docker.engine import Engine

    with contextlib.suppress(TorchbisectError):
        engine = Engine(variables, timeout=_ENGINE_TIMEOUT)
        try:
            engine.sweep()
        finally:
            engine.close()


def _sweep_engine(note: str, rounds: int) -> None:
    with contextlib.suppress(DecodeError):  # a run that was killed while it wrote had not reached its engine yet
        variables = decode(dict[str, str], read_object(note), "note")
        for number in range(rounds):
            time.sleep(_BETWEEN_ROUNDS if number else 0)
            sweep_engine(variables)
