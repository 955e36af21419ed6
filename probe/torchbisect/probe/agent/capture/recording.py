"""Record what is compared of a run: calls of compiled callables, the autograd engine, and the final state.

A recorder serves one run and writes one tape entry for each of these events. It records the same events in an eager
run, in which a "compiled" callable is called uncompiled. The two tapes can therefore be compared entry by entry.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import inspect
import os
import sys
import threading
import time
import traceback
import types
import weakref
import zlib
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple, TypeVar

import torch
import torch._dynamo
import torch._dynamo.eval_frame

from . import exceptions, raw_tensor
from .reachable import (
    WrittenState,
    call_inputs,
    cell_values,
    is_in_main,
    state_of_class,
    tensors_in_value,
    version_of,
    versions_of,
)
from .snapshot import Snapshot
from .tape import Tape

MAX_EVENTS = 2000
_clock = time.perf_counter
_SKIPPED_GLOBALS = ("In", "Out", "exit", "quit")

# After a graph break, or in a backward hook, dynamo intercepts the agent's own frames as well. Compiling these would
# cost seconds and would count as graphs of the script. The next three functions prevent it.
F = TypeVar("F", bound=Callable[..., Any])
_skip_code: Any = getattr(torch._dynamo.eval_frame, "skip_code", None)
_is_compiling: Any = getattr(getattr(torch, "compiler", None), "is_compiling", None) or getattr(
    torch._dynamo, "is_compiling", lambda: False
)


def skip_frame(function: F) -> F:
    """Mark a function so that its own frame is never compiled; the functions it calls still are."""
    if _skip_code is not None:
        _skip_code(function.__code__)
    return function


def disable_compile(function: F) -> F:
    """Return a function that runs, with everything it calls, with the compiler off."""
    disabled: F = torch._dynamo.disable(function)
    return disabled


def is_compiling() -> bool:
    """Return True while the caller is traced; dynamo replaces this call by a constant when it traces it."""
    return bool(_is_compiling())


class OpenCall(NamedTuple):
    """A recorded call that has begun, with the state before it."""

    entry: Dict[str, Any]  # for the tape, still incomplete
    read: Callable[[], Iterator[Tuple[str, Any]]]  # returns the values that the call can read, by name
    inputs: List[Tuple[str, Any]]  # as they were when it began; this keeps the tensors of ``versions`` alive
    versions: Dict[int, int]  # version counters of the input tensors, by ``id``
    rng_state: int  # hash of the random number generator's state
    began: float


class Recorder:
    """Recorder of one run, which writes its events to a tape.

    Args:
        tape: receives the entries.
        folders: the folders of the script and of the modules beside it; classes from there are user classes.
        frame_to_json: returns a frame of an exception as JSON; see ``exceptions.exception_to_json``.
        follow_folders: look for what a call can reach in classes of the folders too, and not of ``__main__`` alone.

    Attributes:
        compiled_sites: the numbers of the ``torch.compile`` sites whose result was called.
        call_seconds: wall time of each recorded call, in order.
        tracer: the ``Tracer`` of a traced run, else ``None``.
    """

    def __init__(
        self, tape: Tape, folders: List[str], frame_to_json: exceptions.FrameToJson, follow_folders: bool = False
    ) -> None:
        self.tape = tape
        self._frame_to_json = frame_to_json
        self.compiled_sites: Set[int] = set()
        self.call_seconds: List[float] = []
        self.tracer: Any = None
        self._folders = tuple(os.path.realpath(folder) + os.sep for folder in folders)
        self._is_own = self.is_user_class if follow_folders else is_in_main
        self._process = os.getpid()
        self._thread = threading.get_ident()
        self._events = 0
        self._current_call: Optional[int] = None
        self._grad_tensors: Dict[int, Tuple[str, Any]] = {}
        self._paths: Dict[str, int] = {}
        self._watched_code: Set[types.CodeType] = set()
        self._user_classes: Dict[type, bool] = {}
        self._left_out: Dict[int, Any] = {}
        self._hook_state = WrittenState(self.is_user_class)
        self._backend_functions: List[Any] = []
        self._begin = disable_compile(self._begin_call)
        self._end = disable_compile(self._end_call)
        self.record_backward = disable_compile(self._record_backward)
        self.add_hook = disable_compile(self._hook_state.add)

    def is_user_class(self, kind: type) -> bool:
        """Return True for a class that the script or a module beside it defines."""
        if kind not in self._user_classes:
            module = sys.modules.get(kind.__module__)
            file = os.path.realpath(getattr(module, "__file__", None) or "/")
            self._user_classes[kind] = kind.__module__ == "__main__" or file.startswith(self._folders)
        return self._user_classes[kind]

    def leave_out(self, value: Any) -> None:
        """Leave a value out of the globals at the end: it is made by the compiler, and another one without it."""
        self._left_out[id(value)] = value

    def add_backend(self, function: Any) -> None:
        """Leave out the state that a function of a backend can write to."""
        self._backend_functions.append(function)

    def _backend_state(self) -> WrittenState:
        """Return what the backends can write to, as of now: a global may be made after the function that names it."""
        found = WrittenState(self.is_user_class)
        for function in self._backend_functions:
            found.add(function)
        return found

    def snapshot(self) -> Snapshot:
        """Return a new snapshot, which samples more tensors if the tape is half full."""
        return Snapshot(self.is_user_class, crowded=self.tape.used > self.tape.size // 2)

    def is_recording(self) -> bool:
        """Return True in the process and thread of the script, until the maximum number of events is reached."""
        return os.getpid() == self._process and threading.get_ident() == self._thread and self._events < MAX_EVENTS

    @property
    def is_in_call(self) -> bool:
        """True while a recorded call is open; a call in it is part of it."""
        return self._current_call is not None

    @skip_frame
    def call(self, site: int, label: str, target: Any, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Call a function and record it as a call of ``target``, unless another recorded call is open.

        Args:
            site: the number of the ``torch.compile`` call that made the function.
            label: the name of the target.
            target: the function or module that the script compiles.
            function: the function to call, compiled or not.
            args: its positional arguments.
            kwargs: its keyword arguments.
        """
        opened = self._begin(site, label, target, args, kwargs)
        if opened is None:
            return function(*args, **kwargs)
        try:
            result = function(*args, **kwargs)
        except BaseException as error:
            self._end(opened, error)
            raise
        self._end(opened, None, result)
        return result

    def _begin_call(self, site: int, label: str, target: Any, args: Any, kwargs: Any) -> Optional[OpenCall]:
        self.compiled_sites.add(site)
        if not self.is_recording() or self._current_call is not None or any(map(raw_tensor.is_fake, args)):
            return None
        number = self._current_call = self._events
        self._events += 1
        read = functools.partial(call_inputs, target, args, kwargs, self._is_own)
        inputs = list(read())
        versions = versions_of(inputs)
        for name, value in inputs:
            self._watch_gradients(name, value)
        self.tape.append({"e": "begin", "n": number, "label": label})
        if self.tracer is not None:
            self.tracer.enter_region(target, args, kwargs)
        return OpenCall({"e": "call", "n": number, "label": label}, read, inputs, versions, rng_state_hash(), _clock())

    def _end_call(self, opened: OpenCall, error: Optional[BaseException], *result: Any) -> None:
        """Record a call that has ended: by an exception, or with one result."""
        self.call_seconds.append(round(_clock() - opened.began, 6))
        self._current_call = None
        if self.tracer is not None:
            self.tracer.leave_region(error)
        if error is not None:
            opened.entry["raised"] = exceptions.exception_to_json(error, self._frame_to_json)
        for item in result:
            self._watch_gradients("call {} output".format(len(self.call_seconds) - 1), item, include_non_leaves=True)
        opened.entry["drew"] = rng_state_hash() != opened.rng_state
        if self.is_recording():
            self._record_call(opened, *result)

    def _record_call(self, opened: OpenCall, *result: Any) -> None:
        entry, snapshot = opened.entry, self.snapshot()
        left_out = self._backend_state()
        # Anew, as the call may have bound other values to names.
        inputs = [(name, value) for name, value in opened.read() if not left_out.includes(name, value)]
        entry["inputs"] = [[name, snapshot.node(value)] for name, value in inputs]
        versions = opened.versions
        entry["mutated"] = [
            index
            for index, tensor in enumerate(snapshot.recorded)
            if id(tensor) in versions and version_of(tensor) != versions[id(tensor)]
        ]
        if result:
            entry["output"] = snapshot.node(result[0])
        entry["hooked"] = [name for name, value in inputs if self._hook_state.includes(name, value)]
        self._write(entry, snapshot)

    def _write(self, entry: Dict[str, Any], snapshot: Snapshot) -> None:
        entry["tensors"] = snapshot.tensors
        self.tape.append(entry, snapshot.chunks)

    def _watch_gradients(self, name: str, value: Any, include_non_leaves: bool = False) -> None:
        """Note the leaves in a value, whose ``.grad`` is recorded after each backward.

        With ``include_non_leaves``, note also tensors on which the script may call ``retain_grad``.
        """
        for path, tensor in tensors_in_value(name, value):
            try:
                held = self._grad_tensors.get(id(tensor))
                known = held is not None and held[1]() is tensor
                if tensor.requires_grad and (include_non_leaves or tensor.is_leaf) and not known:
                    self._grad_tensors[id(tensor)] = (self._unused_path(path), weakref.ref(tensor))
            except (RuntimeError, TypeError):
                continue

    def _unused_path(self, path: str) -> str:
        """Return a path, with a number if it is that of another tensor: two modules are ``self`` of their calls."""
        self._paths[path] = number = self._paths.get(path, 0) + 1
        return path if number == 1 else "{} ({})".format(path, number)

    def _watch_locals(self) -> None:
        """Note the leaves in the variables of the script's functions that wait for a backward, once for each function.

        These are parameters of a model that is not compiled, which the gradient of a compiled loss reaches.
        """
        frame: Any = sys._getframe(1)
        while frame is not None:
            code = frame.f_code
            is_own = frame.f_globals.get("__name__") == "__main__" or code.co_filename.startswith(self._folders)
            if is_own and code not in self._watched_code:
                self._watched_code.add(code)
                for name, value in list(frame.f_locals.items()):
                    if not name.startswith("_"):
                        with contextlib.suppress(Exception):  # an object that doesn't let itself be read
                            self._watch_gradients(name, value)
            frame = frame.f_back

    def _record_backward(self, results: Any, error: Optional[BaseException] = None) -> None:
        """Record a run of the autograd engine: its results or its exception, and the gradients of all noted tensors."""
        if not self.is_recording():
            return
        results = results if isinstance(results, (tuple, list)) else ()
        if any(map(raw_tensor.is_fake, results)):
            return
        self._events += 1
        self._watch_locals()
        snapshot = self.snapshot()
        entry: Dict[str, Any] = {"e": "backward", "inside": self._current_call}
        if error is not None:
            entry["raised"] = exceptions.exception_to_json(error, self._frame_to_json)
        entry["results"] = [snapshot.node(item) for item in results]
        leaves = []
        for path, held in list(self._grad_tensors.values()):
            tensor = held()
            if tensor is not None:
                with raw_tensor.without_dispatch():
                    grad = raw_tensor.read_grad(raw_tensor.unwrap_functorch(tensor))
                leaves.append([path + ".grad", snapshot.node(grad)])
        entry["leaves"] = leaves
        self._write(entry, snapshot)

    def finish(self, ending: Dict[str, Any], namespace: Dict[str, Any]) -> None:
        """Record how the script ended (``observation.Ending`` as JSON) and the state of its globals."""
        if os.getpid() != self._process:
            return
        snapshot = self.snapshot()
        state, hooked, left_out = [], [], self._backend_state()
        for name, value in list(namespace.items()):
            cells = {"{} closure {}".format(name, cell) for cell in self._hook_state.cells_of(value)}
            skipped = {"{} closure {}".format(name, cell) for cell in left_out.cells_of(value)}
            for path, item in self._state_of(name, value):
                if left_out.includes("global " + path, item) or path in skipped:
                    continue
                state.append([path, snapshot.node(item)])
                if self._hook_state.includes("global " + path, item) or path in cells:
                    hooked.append(path)
        self._write({"e": "end", "ending": ending, "globals": state, "hooked": hooked}, snapshot)

    def _state_of(self, name: str, value: Any) -> Iterator[Tuple[str, Any]]:
        """Yield the state of a global that a run can change: its value, a function's cells, a class's attributes."""
        if name.startswith("__") or name in _SKIPPED_GLOBALS or isinstance(value, types.ModuleType):
            return
        if id(value) in self._left_out:
            return
        if isinstance(value, type):
            if self.is_user_class(value):
                for attribute, item in state_of_class(value):
                    yield "{}.{}".format(name, attribute), item
            return
        if isinstance(value, (types.FunctionType, types.MethodType)):
            inner = inspect.unwrap(value) if hasattr(value, "__wrapped__") else value
            for cell, item in cell_values(inner):
                if not callable(item) or isinstance(item, torch.nn.Module):
                    yield "{} closure {}".format(name, cell), item
            return
        yield name, value


def came_out_of_call(error: BaseException) -> bool:
    """Return True if an exception, or one that it was raised in the handler of, came out of a recorded call."""
    link: Optional[BaseException] = error
    for _ in range(exceptions.MAX_CAUSES):
        if link is None:
            break
        if any(frame.f_code is Recorder.call.__code__ for frame, _ in traceback.walk_tb(link.__traceback__)):
            return True
        link = link.__cause__ or link.__context__
    return False


def rng_state_hash() -> int:
    """Return a hash of the states of torch's random number generators, which each draw changes."""
    states = [torch.default_generator.get_state()]
    if torch.cuda.is_initialized():
        with contextlib.suppress(RuntimeError):  # while a CUDA graph is captured
            states += [generator.get_state() for generator in torch.cuda.default_generators]
    hashed = 0
    for state in states:
        hashed = zlib.crc32(ctypes.string_at(state.data_ptr(), state.numel()), hashed)
    return hashed
