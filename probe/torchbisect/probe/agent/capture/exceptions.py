"""Exceptions as JSON: class, message, and frames that say whose code they are in."""

from __future__ import annotations

import os
import sysconfig
import traceback
from typing import Any, Callable, Dict, List, Optional

import torch

HEAD, TAIL = 6000, 2000
FRAMES_OUT, FRAMES_IN = 20, 60
DEEPEST_CAUSE = 4

_TORCH = os.path.dirname(os.path.abspath(torch.__file__))
_LIBRARIES = sorted(
    {os.path.realpath(path) for name, path in sysconfig.get_paths().items() if name in ("stdlib", "purelib", "platlib")}
    | {os.path.dirname(_TORCH)},
    key=len,
    reverse=True,
)
_OURS = "<torchbisect "
_MEMORY_WORDS = ("can't allocate memory", "out of memory", "cannot allocate memory", "not enough memory")


def capped(text: str, head: int = HEAD, tail: int = TAIL) -> str:
    """A text cut in its middle if it is too long."""
    return text if len(text) <= head + tail else text[:head] + "\n[...]\n" + text[-tail:]


def class_path(kind: type) -> str:
    """A class by its module and qualified name; builtins without a module."""
    module = kind.__module__
    return kind.__qualname__ if module in ("builtins", "__main__") else "{}.{}".format(module, kind.__qualname__)


def message_of(error: BaseException) -> str:
    """The exception's text, even if asking for it raises."""
    try:
        return capped(str(error))
    except Exception as trouble:
        return "<the message raised {}>".format(type(trouble).__name__)


def is_memory(error: BaseException) -> bool:
    """Whether an exception says that memory ran out."""
    if isinstance(error, MemoryError) or type(error).__name__ in ("OutOfMemoryError", "AcceleratorOutOfMemoryError"):
        return True
    text = message_of(error).lower()
    return isinstance(error, (RuntimeError, OSError)) and any(words in text for words in _MEMORY_WORDS)


class Places:
    """Tells the script's own frames from torch's and from the libraries'.

    Args:
        folders: where the script and its neighbours lie.
        generated: where the compiler writes code.
    """

    def __init__(self, folders: List[str], generated: List[str]) -> None:
        self._folders = [os.path.realpath(folder) for folder in folders]
        self._generated = [os.path.realpath(folder) for folder in generated]

    def frame(self, file: str, function: str, line: int) -> Optional[Dict[str, Any]]:
        """One frame as JSON; ``None`` for a frame of the agent itself."""
        if file.startswith(_OURS) or os.sep.join(("probe", "agent", "")) in file:
            return None
        where, shown = "library", file
        path = os.path.realpath(file) if os.path.isabs(file) else file
        if any(_inside(path, folder) for folder in self._generated):
            where, shown = "torch", "<generated>"
        elif _inside(path, _TORCH) or file.startswith(("<eval_with_key>", "<torch")):
            where = "torch"
            shown = os.path.join("torch", os.path.relpath(path, _TORCH)) if os.path.isabs(path) else "<generated>"
        elif any(_inside(path, folder) for folder in self._folders):
            where = "user"
            shown = next(os.path.relpath(path, folder) for folder in self._folders if _inside(path, folder))
        else:
            for folder in _LIBRARIES:
                if _inside(path, folder):
                    shown = os.path.relpath(path, folder)
                    break
            else:
                shown = os.path.basename(path)
        return {"file": shown, "function": function, "line": int(line or 0), "where": where}


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + os.sep)


def raised(error: BaseException, frame: Callable[..., Optional[Dict[str, Any]]], depth: int = 0) -> Dict[str, Any]:
    """An exception as ``observation.Raised`` reads it."""
    frames = []
    for item in traceback.extract_tb(error.__traceback__):
        shown = frame(item.filename, item.name, item.lineno or 0)
        if shown is not None:
            frames.append(shown)
    if len(frames) > FRAMES_OUT + FRAMES_IN:
        frames = frames[:FRAMES_OUT] + frames[-FRAMES_IN:]
    kind = type(error)
    bases = [class_path(base) for base in kind.__mro__[1:] if base is not object]
    cause = _cause(error)
    return {
        "name": class_path(kind),
        "bases": bases,
        "message": message_of(error),
        "frames": frames,
        "cause": None if cause is None or depth >= DEEPEST_CAUSE else raised(cause, frame, depth + 1),
    }


def _cause(error: BaseException) -> Optional[BaseException]:
    inner = error.__cause__
    if inner is None:
        inner = getattr(error, "inner_exception", None)
    if inner is None and not error.__suppress_context__:
        inner = error.__context__
    return inner if isinstance(inner, BaseException) and inner is not error else None


def brief(error: BaseException) -> Dict[str, Any]:
    """An exception that a call let out, without frames: the script may catch it and go on."""
    nothing: Callable[..., Optional[Dict[str, Any]]] = lambda *_: None  # noqa: E731
    return raised(error, nothing)
