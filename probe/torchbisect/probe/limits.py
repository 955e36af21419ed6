"""The limits of a run: time, memory, output, processes and files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

PREWARM_SECONDS = 120.0
MARGIN_SECONDS = 30.0
TOOL_SECONDS = 120.0
# The limits of a run apply to processor time. On a loaded machine the wall time may be this many times as long.
LOAD_FACTOR = 4.0
# A smaller form of a script may take its seconds times this factor, and these seconds more.
_FORM_FACTOR, _EAGER_MORE, _COMPILED_MORE = 5.0, 3.0, 30.0


@dataclass(frozen=True)
class Limits:
    """The limits of a run.

    Attributes:
        eager: seconds for an eager run.
        compiled_factor: a compiled run may take the seconds of the eager run times this factor.
        compiled_floor: seconds that a compiled run may take in any case. On a loaded machine inductor took 35 seconds
            for its first kernel.
        compiled_cap: seconds that a compiled run may take at most; one that takes longer hangs.
        memory: bytes of private memory beyond what a child inherits; 0 for no limit.
        output: bytes kept of standard output, and as many of standard error.
        processes: the number of processes that a run may have at a time.
        tasks: the number of threads that all processes of a run may have at a time.
        open_files: the number of descriptors that a process may have.
        files: the number of files that a run may leave in its folders.
        bytes: the size of these files.
        threads: the number of threads of torch's operators.
    """

    eager: float = 60.0
    compiled_factor: float = 20.0
    compiled_floor: float = 90.0
    compiled_cap: float = 600.0
    memory: int = 4 << 30
    output: int = 1 << 20
    processes: int = 128
    tasks: int = 480
    open_files: int = 4096
    files: int = 200_000
    bytes: int = 16 << 30
    threads: int = 2

    def to_json(self) -> dict[str, Any]:
        """Return the limits in the form that the agent reads."""
        return {
            "eager_seconds": self.eager,
            "compiled_factor": self.compiled_factor,
            "compiled_floor": self.compiled_floor,
            "compiled_cap": self.compiled_cap,
            "memory": self.memory,
            "output": self.output,
            "processes": self.processes,
            "tasks": self.tasks,
            "open_files": self.open_files,
            "files": self.files,
            "bytes": self.bytes,
            "threads": self.threads,
        }

    @property
    def compiled(self) -> float:
        """Seconds that any compiled run may take: that of a script whose eager run takes all the time it may."""
        return min(max(self.compiled_floor, self.eager * self.compiled_factor), self.compiled_cap)

    def wall_seconds(self, allowed: float) -> float:
        """Return the wall time of a run that is allowed so many seconds by the agent."""
        return LOAD_FACTOR * min(allowed, max(2 * self.eager, self.compiled, PREWARM_SECONDS, TOOL_SECONDS))

    def for_smaller_forms(self, eager: float, compiled: float) -> Limits:
        """Return tighter limits for the smaller forms of a script whose two runs took so many seconds.

        A form that lost the end of a loop would run until it has spent its time or all its memory, and a reduction
        asks about several of them.
        """
        return replace(
            self,
            eager=min(self.eager, eager * _FORM_FACTOR + _EAGER_MORE),
            compiled_floor=min(self.compiled_floor, compiled * _FORM_FACTOR + _COMPILED_MORE),
        )

    @property
    def longest(self) -> float:
        """Seconds that the script may take under plain Python."""
        return LOAD_FACTOR * (4 * self.eager + MARGIN_SECONDS + self.compiled + PREWARM_SECONDS)
