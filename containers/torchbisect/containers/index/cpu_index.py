"""PyTorch's own index of CPU wheels: its address, and if it can be reached from here."""

from __future__ import annotations

import functools
import threading

import httpx

from torchbisect.core.errors import TorchbisectError
from torchbisect.core.web import new_client

#: The wheels are a tenth of the size of those for CUDA, which the public index has for Linux.
CPU_INDEX = "https://download.pytorch.org/whl/cpu"

#: Seconds for the answer.
_PATIENCE = 3.0


@functools.cache
def answers(index: str = CPU_INDEX, patience: float = _PATIENCE) -> bool:
    """Return true if an index has a page of torch and answers in time. It is asked once a process.

    A name that is not resolved holds a request for longer than its own limits, so a thread waits for it.
    """
    answered: list[bool] = []
    asking = threading.Thread(target=lambda: answered.append(_has_torch(index, patience)), daemon=True)
    asking.start()
    asking.join(patience)
    return answered == [True]


def _has_torch(index: str, patience: float) -> bool:
    try:
        with new_client() as client, client.stream("GET", f"{index}/torch/", timeout=patience) as page:
            return page.status_code == 200
    except (httpx.HTTPError, httpx.InvalidURL, TorchbisectError, OSError):
        return False
