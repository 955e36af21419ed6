"""Watch calls of compiled callables: cheaply at each call, against eager at some, and in full where one looks wrong."""

from __future__ import annotations

import collections
import contextlib
import functools
import itertools
import logging
import shutil
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
import torch._dynamo

from torchbisect.api.capture.call_copy import copied_call, has_nan, kept_generators, may_differ, versions
from torchbisect.api.capture.compile_options import compile_options
from torchbisect.api.check_options import CheckOptions
from torchbisect.api.checked_call import checked_call
from torchbisect.probe.agent.capture.exceptions import is_out_of_memory
from torchbisect.probe.agent.capture.recording import skip_frame

# Doubts about one callable that a second look did not confirm; after so many it is only watched for exceptions.
_MOST_DOUBTS = 3


_LOG = logging.getLogger("torchbisect")


@dataclass
class _Counts:
    calls: int = 0
    doubts: int = 0
    is_written: bool = False


class Watch:
    """The calls that are watched for one folder.

    Attributes:
        written: the number of scripts that were written.

    Args:
        folder: the folder of the scripts.
        every: compare the first call of each callable with eager, and then one call in so many.
        most: the most scripts.
    """

    _all: ClassVar[dict[Path, Watch]] = {}

    def __init__(self, folder: Path, every: int, most: int) -> None:
        self.written = 0
        self._folder, self._every, self._most = folder, every, most
        self._is_new = not folder.exists()
        self._counts: collections.defaultdict[int, _Counts] = collections.defaultdict(_Counts)
        self._held: list[Any] = []  # what was counted lives on, so that no other object gets its id
        self._is_busy = False

    @classmethod
    def of(cls, folder: Path, every: int, most: int) -> Watch:
        """Return the one watch of this process for a folder."""
        return cls._all.setdefault(folder.resolve(), cls(folder, every, most))

    def watched(self, target: Any, compiled: Callable[..., Any], options: dict[str, Any] | None) -> Any:
        """Return a compiled function, changed so that its calls are watched."""
        options = compile_options(compiled) if options is None else options

        def watched(*args: Any, **kwargs: Any) -> Any:
            return self.call(target, compiled, options, args, kwargs)

        with contextlib.suppress(AttributeError, TypeError):
            functools.update_wrapper(watched, target)
        made: Any = skip_frame(watched)
        # When dynamo traces a call of this function in another compiled one, it inlines the original instead.
        made._torchdynamo_inline = made._torchdynamo_orig_callable = target
        return made

    def call(self, target: Any, compiled: Any, options: dict[str, Any], args: Any, kwargs: Any) -> Any:
        """Call a compiled callable; where that goes wrong, write the call as a script."""
        if self._is_busy or self.written >= self._most or torch.compiler.is_compiling():
            return compiled(*args, **kwargs)
        self._is_busy = True
        try:
            return self._watched_call(target, compiled, options, args, kwargs)
        finally:
            self._is_busy = False

    def _watched_call(self, target: Any, compiled: Any, options: dict[str, Any], args: Any, kwargs: Any) -> Any:
        if id(target) not in self._counts:
            self._held.append(target)
        counts = self._counts[id(target)]
        counts.calls += 1
        if counts.is_written:
            return compiled(*args, **kwargs)
        is_trusted = counts.doubts < _MOST_DOUBTS
        is_sample = is_trusted and (counts.calls - 1) % self._every == 0
        copied = _copied(target, args, kwargs) if is_sample else None
        before = versions(args, kwargs)
        try:
            output = compiled(*args, **kwargs)
        except Exception as error:
            if not is_out_of_memory(error):
                self._look(counts, options, copied or _copied(target, args, kwargs), f"raises {type(error).__name__}")
            raise
        if copied is None and is_trusted and before == versions(args, kwargs) and has_nan(output):
            copied = _copied(target, args, kwargs)
        if copied is not None:
            self._compare(counts, options, copied, output)
        return output

    def _compare(self, counts: _Counts, options: dict[str, Any], copied: Any, output: Any) -> None:
        """Compare the output of a call with eager's; look closer if they differ."""
        again = _copied(*copied)
        with kept_generators(), warnings.catch_warnings():
            try:
                function, args, kwargs = copied
                looks_wrong = may_differ(output, function(*args, **kwargs))
            except Exception:
                looks_wrong = True
        if looks_wrong and again is not None:
            self._look(counts, options, again, "differs from eager")

    def _look(self, counts: _Counts, options: dict[str, Any], copied: Any, what: str) -> None:
        """Check a call in full, and leave its script if it shows the mismatch by itself."""
        if copied is None or counts.doubts >= _MOST_DOUBTS:
            return
        function, args, kwargs = copied
        name = getattr(function, "__name__", type(function).__name__)
        folder = self._free_folder(name, counts.calls)
        try:
            with kept_generators():
                checked = checked_call(function, args, kwargs, CheckOptions(compile=options, out=folder))
        except Exception as error:  # the program goes on, whatever is wrong here
            counts.doubts += 1
            self._discard(folder)
            _LOG.warning(f"call {counts.calls} of {name} {what}, and can't be checked: {type(error).__name__}: {error}")
            return
        if checked.report.mismatch is None:
            counts.doubts += 1
            self._discard(folder)
            return
        self.written += 1
        counts.is_written = True
        place = f"torchbisect run {checked.script}" if checked.script else f"read {folder / 'report.md'}"
        _LOG.warning(f"call {counts.calls} of {name}: {checked.report.mismatch.summary}; next: {place}")

    def _discard(self, folder: Path) -> None:
        """Remove the results of a call, and the folder of all results if it was made here and nothing is in it."""
        shutil.rmtree(folder, ignore_errors=True)
        if self._is_new:
            with contextlib.suppress(OSError):
                self._folder.rmdir()

    def _free_folder(self, name: str, call: int) -> Path:
        wanted = f"{name}-call-{call}"
        names = itertools.chain([wanted], (f"{wanted}-{number}" for number in itertools.count(2)))
        return next(self._folder / one for one in names if not (self._folder / one / "repro.py").exists())


@contextlib.contextmanager
def watched_compiler(watch: Watch) -> Iterator[None]:
    """Watch the calls of what is compiled in this context, and of every compiled module."""
    kind: Any = torch._dynamo.eval_frame.OptimizedModule
    real_compile, real_call = torch.compile, kind.__call__

    @functools.wraps(real_compile)
    def compile_watched(model: Any = None, **options: Any) -> Any:
        if model is None:
            return lambda function: compile_watched(function, **options)
        compiled = real_compile(model, **options)
        if options.get("disable") or isinstance(compiled, torch.nn.Module) or isinstance(model, type) or watch._is_busy:
            return compiled
        return watch.watched(model, compiled, options)

    def call_watched(module: Any, *args: Any, **kwargs: Any) -> Any:
        return watch.call(module._orig_mod, functools.partial(real_call, module), compile_options(module), args, kwargs)

    torch.compile = compile_watched
    kind.__call__ = skip_frame(call_watched)
    try:
        yield
    finally:
        torch.compile, kind.__call__ = real_compile, real_call


def _copied(target: Any, args: Any, kwargs: Any) -> Any:
    """Return copies of a call; ``None`` if a value can't be copied."""
    try:
        return copied_call(target, args, kwargs)
    except Exception:
        return None
