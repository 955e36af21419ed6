"""A process of an environment that has imported torch, from which each measured run is forked."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torchbisect.containers.environment import Environment, Process
from torchbisect.containers.process.processes import LineTooLong
from torchbisect.containers.process.run_command import OUTPUT_LIMIT, Completed
from torchbisect.core.decode import DecodeError, JsonLimits, read_object

_LIMITS = JsonLimits(size=1 << 20)


class WarmProcess:
    """Runs scripts in forks of one process on this machine; see ``agent/run/measured_server.py``.

    Args:
        tool: the file that the environment's Python starts.
        variables: the variables of all runs.
        modules: the modules of torch that earlier runs imported; the list grows.
    """

    def __init__(self, environment: Environment, tool: Path, variables: Mapping[str, str], modules: list[str]) -> None:
        self._environment, self._tool, self._variables = environment, tool, variables
        self._modules = modules
        self._process: Process | None = None

    def run(
        self, folder: Path, words: Sequence[str], plan: Mapping[str, Any], arguments: Sequence[str], timeout: float
    ) -> Completed:
        """Run the script that ``standalone_run.place_script`` placed in a folder with these words."""
        begun = time.monotonic()
        output, errors = folder / "measured-output", folder / "measured-errors"
        request = {
            "plan": plan,
            "script": words[-1],
            "arguments": list(arguments),
            "folder": str(folder),
            "place": json.loads(words[-2]) if len(words) > 1 else None,
            "output": str(output),
            "errors": str(errors),
            "modules": self._modules,
            "modules_file": str(folder / "measured-modules"),
        }
        answer = self._answer(request, timeout)
        if isinstance(answer, Completed):
            return answer
        status = answer.get("status")
        known = set(self._modules)
        self._modules += [name for name in answer.get("modules", ()) if isinstance(name, str) and name not in known]
        return Completed(
            status if isinstance(status, int) else 1, _read(output), _read(errors), time.monotonic() - begun
        )

    def close(self) -> None:
        """End the process, and everything that its runs left."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def _answer(self, request: Mapping[str, Any], timeout: float) -> dict[str, Any] | Completed:
        """Return the answer to a request, or how the process ended without one."""
        if self._process is None:
            self._process = self._environment.start([str(self._tool)], self._variables)
        process, line = self._process, None
        try:
            process.send(json.dumps(request).encode() + b"\n")
            line = process.read_line(timeout)
            if line:
                return read_object(line.decode("utf-8", "replace"), _LIMITS)
        except (BrokenPipeError, LineTooLong, DecodeError):
            line = b""
        errors = process.errors()
        status = process.kill()
        self._process = None
        return Completed(None if line is None else status or 1, "", errors, timeout)


def _read(path: Path) -> str:
    """Return the last part of what a run wrote."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - OUTPUT_LIMIT))
            return file.read(OUTPUT_LIMIT).decode("utf-8", "replace")
    except OSError:
        return ""
