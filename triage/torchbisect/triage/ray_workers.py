"""Run tasks on a Ray cluster, with the same workers as on one machine; the death of a node loses no result.

Ray is an extra (``pip install torchbisect[ray]``). Ray itself requires the same version here and on the cluster, and
torchbisect has to be installed on every node. A Ray cluster serves everybody who reaches it: keep it on a private
network.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import sys
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

from torchbisect.containers.leftovers import sweep
from torchbisect.containers.store.run_folder import temporary_folder, unique_folder
from torchbisect.core.decode import DecodeError
from torchbisect.core.errors import InputError, MachineError
from torchbisect.reports import files
from torchbisect.triage.jobs import Task, TaskResult
from torchbisect.triage.local_workers import WorkerProcess
from torchbisect.triage.tasks import task_from_json

#: Number of other nodes that Ray tries after the node of a task died.
NODE_TRIES = 5
CONNECT_SECONDS = 15.0

#: The worker that a Ray process on a node keeps between tasks.
_workers: list[WorkerProcess] = []


def run_on_ray(tasks: Sequence[Task], address: str, gpus: float) -> Generator[TaskResult]:
    """Run tasks on a cluster; write each report and yield each result as it is ready.

    Args:
        tasks: the tasks.
        address: the cluster's ``HOST:PORT``.
        gpus: the GPUs of a node that a task takes; several tasks share a GPU if this is less than 1.

    Raises:
        InputError: Ray is not installed, or the cluster has too few GPUs.
        MachineError: no cluster answers at the address.
    """
    ray = _connect(address)
    try:
        if gpus and ray.cluster_resources().get("GPU", 0) < gpus:
            raise InputError(f"--gpus {gpus:g}: the cluster at {address} has {ray.cluster_resources().get('GPU', 0):g}")
        remote = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=NODE_TRIES)(run_on_node)
        pending = {remote.remote(_json_for_any_node(task)): task for task in tasks}
        while pending:
            for reference in ray.wait(list(pending), num_returns=1)[0]:
                yield _take_result(ray, reference, pending.pop(reference))
    finally:
        ray.shutdown()


def _connect(address: str) -> Any:
    try:
        import ray
    except ImportError:
        raise InputError("--executor ray needs Ray: python -m pip install 'torchbisect[ray]'") from None
    _check_port(address)
    try:
        with _nobodys_folder():
            ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        said = str(error).strip().splitlines()
        raise MachineError(f"no Ray cluster answers at {address}: {said[0] if said else error!r}") from error
    return ray


@contextlib.contextmanager
def _nobodys_folder() -> Iterator[None]:
    """Work in the system's root for a moment: Ray's processes import modules from the folder that its client is in.

    Where the user works, a stranger's scripts may lie.
    """
    before = os.getcwd()
    os.chdir(os.sep)
    try:
        yield
    finally:
        os.chdir(before)


def _check_port(address: str) -> None:
    """Check that a server listens at the address; Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise InputError(f"--address {address}: write HOST:PORT, as in the output of ray start --head")
    try:
        socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise MachineError(f"no Ray cluster answers at {address}: {error}") from error


def _json_for_any_node(task: Task) -> dict[str, Any]:
    """Return the task without this machine's Python: each node uses its own, unless the user named one."""
    python = "" if task.options.python == sys.executable else task.options.python
    data = task.to_json()
    return {**data, "options": {**data["options"], "python": python}}


def _take_result(ray: Any, reference: Any, task: Task) -> TaskResult:
    try:
        result = TaskResult.from_json(ray.get(reference))
    except (ray.exceptions.RayError, DecodeError, InputError) as error:
        said = str(error).strip().splitlines()
        return TaskResult(task.name, problem=f"Ray could not run it: {said[0] if said else error!r}", retry=True)
    if result.report is not None:
        files.write(result.report, task.options.out)
    return result


def run_on_node(data: dict[str, Any]) -> dict[str, Any]:
    """Run one task in a process that Ray started on a node; its folder is a temporary one."""
    if not _workers:
        sweep()
        _workers.append(WorkerProcess(unique_folder("triage") / "journal.jsonl"))
    (worker,) = _workers
    task = task_from_json(data)
    with temporary_folder("issue") as folder:
        return worker.run(task.in_folder(Path(folder), sys.executable)).to_json()
