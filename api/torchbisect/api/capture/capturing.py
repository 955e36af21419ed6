"""The context and the decorator that watch compiled calls; importing them imports no torch."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from torchbisect.api.capture.watch import Watch

#: Set to 0, this environment variable turns capturing off.
VARIABLE = "TORCHBISECT_CAPTURE"
Function = TypeVar("Function", bound=Callable[..., Any])


@contextlib.contextmanager
def capture(folder: Path | str = "repro", *, every: int = 1000, most: int = 3) -> Iterator[None]:
    """Watch the compiled calls in this context; write the first that goes wrong as a script.

    A call goes wrong if it raises, if it returns NaN where eager does not, or if it is one of those that are compared
    with eager and differs. Then ``check`` runs it again, in this process, and leaves a script that shows it in a folder
    of its own. Counts go on from one context to the next with the same folder.

    Args:
        folder: the folder of the scripts.
        every: each compiled callable is compared with eager at its first call, and then at one call in so many.
        most: the most calls that are written, one for each compiled callable; after them nothing is watched.
    """
    if _is_off():
        yield
        return
    from torchbisect.api.capture.watch import Watch, watched_compiler

    with watched_compiler(Watch.of(Path(folder), every, most)):
        yield


def watch_compile(
    function: Function | None = None, *, folder: Path | str = "repro", every: int = 1000, most: int = 3
) -> Any:
    """Watch the compiled calls of a function, as ``capture`` does; the function may itself be a compiled one.

    ``@watch_compile`` and ``@watch_compile(folder="bugs")`` both decorate. Of a compiled module call
    ``watch_compile(model.forward)``, or use ``capture``.
    """
    if function is None:
        return functools.partial(watch_compile, folder=folder, every=every, most=most)
    if _is_off():
        return function
    target = getattr(function, "_torchdynamo_orig_callable", None)
    if target is None:

        @functools.wraps(function)
        def watched(*args: Any, **kwargs: Any) -> Any:
            with capture(folder, every=every, most=most):
                return function(*args, **kwargs)

        return watched
    return _watch(Path(folder), every, most).watched(target, function, None)


def _watch(folder: Path, every: int, most: int) -> Watch:
    from torchbisect.api.capture.watch import Watch

    return Watch.of(folder, every, most)


def _is_off() -> bool:
    return os.environ.get(VARIABLE, "1") in ("0", "false", "off")
