"""Limits of a container that runs foreign code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import docker.types

#: The user and group of foreign code: nobody, on Debian and most other systems.
NOBODY = "65534:65534"
#: The only writable folder, in memory; compilers also run what they write there.
SCRATCH = "/tmp"


@dataclass(frozen=True)
class Confinement:
    """Limits of one container.

    Attributes:
        memory: bytes, with the files in the scratch folder; there is no swap.
        scratch: bytes of files in the scratch folder.
        processes: how many processes and threads there may be at a time.
        gpu: the number or UUID of the GPU that is let in; ``None`` for none.
    """

    memory: int = 12 << 30
    scratch: int = 4 << 30
    processes: int = 1024
    gpu: str | None = None

    def options(self) -> dict[str, Any]:
        """Return the keyword arguments of ``containers.create`` that confine foreign code.

        The container has no network and no capabilities, gains none by set-uid programs, and runs as nobody.
        Only memory is writable. Memory, processes and files are limited.
        An init reaps zombies, and no log can fill the engine's disk.
        """
        options: dict[str, Any] = {
            "network_mode": "none",
            "read_only": True,
            "tmpfs": {SCRATCH: f"rw,exec,nosuid,nodev,mode=1777,size={self.scratch}"},
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges:true"],
            "user": NOBODY,
            "mem_limit": self.memory,
            "memswap_limit": self.memory,
            "pids_limit": self.processes,
            "init": True,
            "ipc_mode": "private",
            "shm_size": min(self.scratch, 1 << 30),
            "log_config": docker.types.LogConfig(type="none"),
            "ulimits": [docker.types.Ulimit(name="core", soft=0, hard=0)],
            "working_dir": SCRATCH,
        }
        if self.gpu is not None:
            options["device_requests"] = [docker.types.DeviceRequest(device_ids=[self.gpu], capabilities=[["gpu"]])]
        return options
