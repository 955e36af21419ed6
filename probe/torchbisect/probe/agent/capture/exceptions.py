"""Convert exceptions to JSON: class, message, and frames labelled with the owner of their code."""

from __future__ import annotations

import os
import sysconfig
import traceback
from typing import Any, Callable, Dict, List, Optional

import torch

MESSAGE_HEAD, MESSAGE_TAIL = 6000, 2000
OUTER_FRAMES, INNER_FRAMES = 20, 60
MAX_CAUSES = 4

_TORCH = os.path.dirname(os.path.abspath(torch.__file__))
_LIBRARIES = sorted(
    {os.path.realpath(path) for name, path in sysconfig.get_paths().items() if name in ("stdlib", "purelib", "platlib")}
    | {os.path.dirname(_TORCH)},
    key=len,
    reverse=True,
)
_AGENT_FILES = "<torchbisect "
_OUT_OF_MEMORY_TEXTS = ("can't allocate memory", "out of memory", "cannot allocate memory", "not enough memory")

FrameToJson = Callable[[str, str, int], Optional[Dict[str, Any]]]


def truncate(text: str, head: int = MESSAGE_HEAD, tail: int = MESSAGE_TAIL) -> str:
    """Return the text, with its middle removed if it is longer than ``head + tail`` characters."""
    return text if len(text) <= head + tail else text[:head] + "\n[...]\n" + text[-tail:]


def class_path(kind: type) -> str:
    """Return a class's module and qualified name; builtins and the script's classes have no module."""
    module = kind.__module__
    return kind.__qualname__ if module in ("builtins", "__main__") else "{}.{}".format(module, kind.__qualname__)


def message_of(error: BaseException) -> str:
    """Return the exception's text, even if its ``__str__`` raises."""
    try:
        return truncate(str(error))
    except Exception as failure:
        return "<the message raised {}>".format(type(failure).__name__)


def is_out_of_memory(error: BaseException) -> bool:
    """Return True if an exception reports that memory ran out."""
    if isinstance(error, MemoryError) or type(error).__name__ in ("OutOfMemoryError", "AcceleratorOutOfMemoryError"):
        return True
    text = message_of(error).lower()
    return isinstance(error, (RuntimeError, OSError)) and any(words in text for words in _OUT_OF_MEMORY_TEXTS)


class FrameClassifier:
    """Classifier of traceback frames: the script's, torch's or a library's.

    Args:
        user_folders: the folders of the script and of the modules beside it.
        generated_folders: the folders where the compiler writes code.
    """

    def __init__(self, user_folders: List[str], generated_folders: List[str]) -> None:
        self._user_folders = [os.path.realpath(folder) for folder in user_folders]
        self._generated_folders = [os.path.realpath(folder) for folder in generated_folders]

    def frame(self, file: str, function: str, line: int) -> Optional[Dict[str, Any]]:
        """Return one frame as JSON; ``None`` for a frame of the agent itself."""
        if file.startswith(_AGENT_FILES) or os.sep.join(("probe", "agent", "")) in file:
            return None
        owner, shown = "library", file
        path = os.path.realpath(file) if os.path.isabs(file) else file
        if any(_is_inside(path, folder) for folder in self._generated_folders):
            owner, shown = "torch", "<generated>"
        elif _is_inside(path, _TORCH) or file.startswith(("<eval_with_key>", "<torch")):
            owner = "torch"
            shown = os.path.join("torch", os.path.relpath(path, _TORCH)) if os.path.isabs(path) else "<generated>"
        elif any(_is_inside(path, folder) for folder in self._user_folders):
            owner = "user"
            shown = next(os.path.relpath(path, folder) for folder in self._user_folders if _is_inside(path, folder))
        else:
            library = next((folder for folder in _LIBRARIES if _is_inside(path, folder)), None)
            shown = os.path.relpath(path, library) if library is not None else os.path.basename(path)
        return {"file": shown, "function": function, "line": int(line or 0), "where": owner}


def _is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + os.sep)


def exception_to_json(error: BaseException, frame_to_json: FrameToJson, depth: int = 0) -> Dict[str, Any]:
    """Return an exception as JSON, in the form that ``observation.Raised`` reads.

    Args:
        error: the exception.
        frame_to_json: returns a frame as JSON, or ``None`` to leave it out.
        depth: the number of exceptions that this one is a cause of.
    """
    extracted = traceback.extract_tb(error.__traceback__)
    shown = [frame_to_json(item.filename, item.name, item.lineno or 0) for item in extracted]
    frames = [frame for frame in shown if frame is not None]
    if len(frames) > OUTER_FRAMES + INNER_FRAMES:
        frames = frames[:OUTER_FRAMES] + frames[-INNER_FRAMES:]
    kind, cause = type(error), _cause(error)
    return {
        "name": class_path(kind),
        "bases": [class_path(base) for base in kind.__mro__[1:] if base is not object],
        "message": message_of(error),
        "frames": frames,
        "cause": None if cause is None or depth >= MAX_CAUSES else exception_to_json(cause, frame_to_json, depth + 1),
    }


def _cause(error: BaseException) -> Optional[BaseException]:
    inner = error.__cause__
    if inner is None:
        inner = getattr(error, "inner_exception", None)
    if inner is None and not error.__suppress_context__:
        inner = error.__context__
    return inner if isinstance(inner, BaseException) and inner is not error else None
