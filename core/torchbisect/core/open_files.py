"""The number of files that this process may have open.

The agent and every script inherit it. A run that ends for want of it says something about this machine and nothing
about the script, so the command does not begin with too few.
"""

from __future__ import annotations

import resource

from torchbisect.core.errors import MachineError

#: What a command is given where the system allows it: the usual limit, and the most that ``select`` can wait for.
_WANTED = 1024
_FEWEST = 256


def allow_open_files() -> None:
    """Raise the limit on open files to the usual one. Raise ``MachineError`` if the system allows too few."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WANTED if hard == resource.RLIM_INFINITY else min(hard, _WANTED)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    if wanted < _FEWEST:
        raise MachineError(
            f"this process may have {wanted} files open, and torchbisect needs {_FEWEST}: raise the limit "
            "(ulimit -n 1024, or nofile in /etc/security/limits.conf), then run the same command again"
        )
