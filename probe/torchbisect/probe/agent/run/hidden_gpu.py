"""Let the agent compile as on a machine without a GPU, so that its children can use the one that is there.

CUDA can't be used in a child whose parent has initialized it, and NVML can't where the child closes the descriptors of
its parent. Compiling initializes both where torch sees a GPU, even if the function runs on the CPU: dynamo keeps the
state of CUDA's random numbers (``preserve_rng_state``) and lists the cards (``init_device_reg``), and inductor's caches
hold the name of the card (``CacheBase.get_system``).
"""

from __future__ import annotations

import dis
import functools
import inspect
import os
import sys
from types import CodeType, FrameType
from typing import Any, Dict, Iterator, List, Optional, Tuple

import torch

_CACHED = type(functools.lru_cache(lambda: None))


class HiddenGpu:
    """A context in which ``torch.cuda.is_available()`` is false and nothing calls CUDA's driver.

    Functions that kept what they found out meanwhile forget it at the end, but those that return nothing: they register
    something once. A module that is imported gets the true answer, because it keeps it. In a build without CUDA, and
    on a machine without a GPU, nothing is changed.

    Attributes:
        number: the number of GPUs that are hidden.
    """

    def __init__(self) -> None:
        self.number = 0
        self._asking: Dict[CodeType, Dict[str, Any]] = {}  # with the names of the module
        self._base: Optional[FrameType] = None
        # The function itself stays, because dynamo knows it by its identity.
        self._is_available = getattr(getattr(torch.cuda, "is_available", None), "__code__", None)
        self._real: List[Tuple[Any, str, Any]] = []

    def __enter__(self) -> HiddenGpu:
        can_hide = hasattr(torch._C, "_cuda_init") and not torch.cuda.is_initialized()
        self.number = _number_of_gpus() if can_hide else 0
        if self.number > 0:
            self._base = sys._getframe(1)
            self._replace(torch.cuda, "_is_compiled", self._answer)
            self._replace(torch.cuda, "_device_count_nvml", lambda: self.number)
            self._replace(torch._C, "_cuda_getDeviceCount", lambda: self.number)
            self._replace(torch._C, "_cuda_init", self._refuse)
            # ``FakeTensorMode`` calls it where there is no GPU, for tensors of one. It asks the driver.
            self._replace(torch._C, "_ensureCUDADeviceGuardSet", lambda: None)
        return self

    def __exit__(self, *error: object) -> None:
        for place, name, value in self._real:
            setattr(place, name, value)
        self._real.clear()
        self._base = None
        self._forget()

    def _replace(self, place: Any, name: str, value: Any) -> None:
        if hasattr(place, name):
            self._real.append((place, name, getattr(place, name)))
            setattr(place, name, value)

    def _answer(self) -> bool:
        """Stand for ``torch.cuda._is_compiled``, which ``is_available`` asks first, and others too."""
        caller = sys._getframe(1)
        return caller.f_code is not self._is_available or self._note(caller)

    def _refuse(self) -> None:
        self._note(sys._getframe(1))
        raise RuntimeError("CUDA is not initialized in a process that forks others")

    def _note(self, frame: Optional[FrameType]) -> bool:
        """Note the functions that are waiting for an answer; return true if one of them imports a module."""
        while frame is not None and frame is not self._base:
            if frame.f_code.co_name == "<module>":
                return True
            self._asking[frame.f_code] = frame.f_globals
            frame = frame.f_back
        return False

    def _forget(self) -> None:
        """Empty the caches of the functions that were noted."""
        modules = {id(names): names for names in self._asking.values()}
        for names in modules.values():
            for function in _functions_with_cache(names):
                is_noted = getattr(function.__wrapped__, "__code__", None) in self._asking
                if is_noted and _returns_something(inspect.unwrap(function)):
                    function.cache_clear()


def _number_of_gpus() -> int:
    """Return the number of GPUs that torch sees. A child asks, because asking initializes NVML or CUDA."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, str(torch.cuda.device_count()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader) as answer:
        number = int(answer.read() or 0)
    os.waitpid(child, 0)
    return number


def _functions_with_cache(names: Dict[str, Any]) -> Iterator[Any]:
    """Yield the functions with ``functools.lru_cache`` of a module and of its classes."""
    for value in list(names.values()):
        inside = vars(value).values() if isinstance(value, type) and value.__module__ == names.get("__name__") else ()
        for one in (value, *inside):
            function = one.__func__ if isinstance(one, (staticmethod, classmethod)) else one
            if isinstance(function, _CACHED):
                yield function


def _returns_something(function: Any) -> bool:
    """Return true if a function can return something else than ``None``."""
    loads_none = False
    for one in dis.get_instructions(function):
        if one.opname == "RETURN_VALUE" and not loads_none:
            return True
        if one.opname == "RETURN_CONST" and one.argval is not None:
            return True
        loads_none = one.opname == "LOAD_CONST" and one.argval is None
    return False
