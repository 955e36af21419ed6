"""Jobs on a Ray cluster: the same jobs and the same workers, one a Ray task; a node that dies loses nothing.

Ray is an extra (``pip install torchbisect[ray]``) and has to be the same version as the cluster's, as it demands
itself; torchbisect has to be installed on every node. A Ray cluster lets in whoever reaches it: keep it on a network of
your own.
"""

from __future__ import annotations

import logging
import socket
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from torchbisect.core.errors import InputError, MachineError
from torchbisect.reports import files
from torchbisect.triage.jobs import Done, Task
from torchbisect.triage.local_workers import Worker

#: So often a task is given to another node after its own one died.
NODE_TRIES = 5
CONNECT_SECONDS = 15.0

_workers: list[tuple[Worker, tempfile.TemporaryDirectory[str]]] = []
"""Of a process of Ray's on a node: the worker that it keeps from task to task, and the worker's folder."""


def run_on_ray(tasks: Sequence[Task], address: str, gpus: float) -> Generator[Done]:
    """Run jobs on a cluster; each is given out, and its report written, as it is done.

    Args:
        tasks: the jobs.
        address: the cluster's, ``HOST:PORT``.
        gpus: GPUs that a job takes of its node; a part of one lets several jobs share it.

    Raises:
        InputError: Ray isn't installed, or the cluster has no such GPUs.
        MachineError: no cluster answers there.
    """
    ray = _joined(address)
    try:
        if gpus and ray.cluster_resources().get("GPU", 0) < gpus:
            raise InputError(f"--gpus {gpus:g}: the cluster at {address} has {ray.cluster_resources().get('GPU', 0):g}")
        remote = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=NODE_TRIES)(run_on_node)
        pending = {remote.remote(_for_any_node(task)): task for task in tasks}
        while pending:
            for reference in ray.wait(list(pending), num_returns=1)[0]:
                yield _taken(ray, reference, pending.pop(reference))
    finally:
        ray.shutdown()


def _joined(address: str) -> Any:
    try:
        import ray
    except ImportError:
        raise InputError("--executor ray needs Ray: python -m pip install 'torchbisect[ray]'") from None
    _look(address)
    try:
        ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        said = str(error).strip().splitlines()
        raise MachineError(f"no Ray cluster answers at {address}: {said[0] if said else error!r}") from error
    return ray


def _look(address: str) -> None:
    """See whether anybody answers there: Ray itself goes on trying for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise InputError(f"--address {address}: write HOST:PORT, as ray start --head says it")
    try:
        socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise MachineError(f"no Ray cluster answers at {address}: {error}") from error


def _for_any_node(task: Task) -> dict[str, Any]:
    """The task without what only this machine has: unless it was named, the Python is each node's own."""
    python = "" if task.options.python == sys.executable else task.options.python
    return replace(task, options=replace(task.options, python=python)).to_json()


def _taken(ray: Any, reference: Any, task: Task) -> Done:
    try:
        done = Done.from_json(ray.get(reference))
    except (ray.exceptions.RayError, ValueError, KeyError, TypeError, InputError) as error:
        said = str(error).strip().splitlines()
        return Done(task.job.name, trouble=f"Ray could not run it: {said[0] if said else error!r}", again=True)
    if done.report is not None:
        files.write(done.report, task.options.out)
    return done


def run_on_node(data: dict[str, Any]) -> dict[str, Any]:
    """Run one job in the process that Ray has given the task to; its folder is a temporary one."""
    if not _workers:
        kept = tempfile.TemporaryDirectory(prefix="torchbisect-triage-")
        _workers.append((Worker(Path(kept.name) / "journal.jsonl"), kept))
    worker, _ = _workers[0]
    task = Task.from_json(data)
    with tempfile.TemporaryDirectory(prefix="torchbisect-issue-") as folder, suppress(FileNotFoundError):
        script = task.options.script
        assert script is not None
        alone = task.job.path is None or not script.exists()
        options = replace(
            task.options,
            python=task.options.python or sys.executable,
            out=Path(folder),
            script=Path(folder) / script.name if alone else script,
        )
        job = replace(task.job, path=None) if alone else task.job
        return worker.run(Task(job, options)).to_json()
    raise AssertionError("the folder went away")
