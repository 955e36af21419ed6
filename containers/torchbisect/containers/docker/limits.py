"""What a container may do while foreign code runs in it, as the engine is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import docker.types

#: The user and group that foreign code runs as: nobody's, on every Debian and on most others.
NOBODY = "65534:65534"
#: Where foreign code may write, in memory; compilers need to run what they write there.
SCRATCH = "/tmp"


@dataclass(frozen=True)
class Confinement:
    """The limits of one container.

    Attributes:
        memory: bytes, files in the scratch folder included; there is no swap beyond it.
        scratch: bytes of files in the scratch folder.
        processes: how many there may be at a time, threads counted.
        cpus: how many CPUs' worth of time, or ``None`` for all.
        gpu: which GPU is let in: its number or UUID; ``None`` for none.
        runtime: another runtime than the engine's default, such as gVisor's ``runsc``.
    """

    memory: int = 12 << 30
    scratch: int = 4 << 30
    processes: int = 1024
    cpus: float | None = None
    gpu: str | None = None
    runtime: str | None = None

    def options(self) -> dict[str, Any]:
        """The keyword arguments of ``containers.create`` that hold foreign code in.

        No network, no capability and none to gain by a set-uid program, nothing writable but memory, nobody's rights,
        limits on memory, processes and files, an init that reaps, no log that could fill the engine's disk.
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
        if self.cpus is not None:
            options["nano_cpus"] = int(self.cpus * 1e9)
        if self.gpu is not None:
            options["device_requests"] = [docker.types.DeviceRequest(device_ids=[self.gpu], capabilities=[["gpu"]])]
        if self.runtime is not None:
            options["runtime"] = self.runtime
        return options
