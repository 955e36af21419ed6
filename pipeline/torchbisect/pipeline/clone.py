"""The clone of PyTorch that commits are read from."""

from __future__ import annotations

from torchbisect.bisect.sources.history import PYTORCH, History
from torchbisect.containers.store.cache import Cache
from torchbisect.core.retry import Notify
from torchbisect.pipeline.options import Options


def open_history(options: Options, notify: Notify) -> History:
    """Open the clone of ``--git``, or the one in the cache, which is made or brought up to date.

    Raises:
        InputError: the folder that was named is no git repository.
        MachineError: git isn't installed, or the address can't be cloned.
    """
    return History.open(options.git or PYTORCH, Cache(options.cache_dir).root / "git", notify=notify)
