"""Run a script under plain ``python``: no agent and no torchbisect, only the environment's interpreter.

A shrunk script must fail here before a report says that it stands alone.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass

from torchbisect.containers.environment import Environment
from torchbisect.containers.process.commands import Completed
from torchbisect.core.errors import DiskFull

_LAST_LINES = 12
_LONGEST_LINE = 2000


@dataclass(frozen=True)
class PlainRun:
    """The ending of a script under plain ``python``.

    Attributes:
        status: the exit status; the negative number of the signal that ended it; ``None`` if its time ran out.
        output: what it wrote to standard output, then to standard error, capped by the environment.
        last_words: the last informative line: the exception, where there is a traceback.
    """

    status: int | None
    output: str
    last_words: str
    seconds: float

    @property
    def failed(self) -> bool:
        """True unless it ended with status 0."""
        return self.status != 0


def run_plain(
    environment: Environment,
    source: str,
    arguments: Sequence[str] = (),
    *,
    timeout: float = 300.0,
    name: str = "minimal.py",
    compiled: bool = True,
) -> PlainRun:
    """Run a script with the environment's ``python`` in an empty folder of its own, with compiler caches of its own.

    Args:
        timeout: seconds until it is ended.
        compiled: ``False`` switches ``torch.compile`` off through torch's own ``TORCHDYNAMO_DISABLE``.

    Raises ``DiskFull`` if there is no room for the folder or for what the script writes.
    """
    with tempfile.TemporaryDirectory(prefix="torchbisect-plain-", ignore_cleanup_errors=True) as folder:
        extra = {variable: os.path.join(folder, part) for variable, part in _CACHES}
        if not compiled:
            extra["TORCHDYNAMO_DISABLE"] = "1"
        try:
            with open(os.path.join(folder, name), "w", encoding="utf-8", errors="surrogatepass") as file:
                file.write(source)
        except OSError as error:
            raise DiskFull(f"{folder}: {error.strerror}: the script can't be written there") from error
        done = environment.run([name, *arguments], timeout=timeout, directory=folder, extra=extra)
    text = done.output + ("\n" if done.output and not done.output.endswith("\n") else "") + done.errors
    check_disk(done)
    return PlainRun(done.status, text, last_words(text), done.seconds)


_CACHES = (("TORCHINDUCTOR_CACHE_DIR", "inductor"), ("TRITON_CACHE_DIR", "triton"))
# What torch prints below an exception is advice; the exception stands above it.
_ADVICE = (
    "Set TORCHDYNAMO_VERBOSE",
    "Set TORCH_LOGS",
    "You can suppress",
    "import torch._dynamo",
    "torch._dynamo.config",
)


def check_disk(done: Completed) -> None:
    """Raise ``DiskFull`` if what was run says that there was no room left on the disk."""
    if "No space left on device" in done.errors:
        raise DiskFull("no space left on the disk: free some, then give the same command again")


def last_words(text: str) -> str:
    """Return the last informative line of a script's output: the exception of a traceback; empty if there is none."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    for position, line in reversed(list(enumerate(lines))):
        if line == "from user code:" and position:
            return _exception_above(lines, position)
    kept = [line for line in lines if not line.strip().startswith(_ADVICE)]
    return kept[-1].strip()[:_LONGEST_LINE] if kept else ""


def _exception_above(lines: list[str], position: int) -> str:
    """Return the line that names the exception, above the lines that quote the script."""
    for line in reversed(lines[max(0, position - _LAST_LINES) : position]):
        name = line.split(":", 1)[0]
        if line and not line[0].isspace() and name.replace(".", "").replace("_", "").isalnum():
            return line[:_LONGEST_LINE]
    return lines[position - 1].strip()[:_LONGEST_LINE]
