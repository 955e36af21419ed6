"""The sources of the libraries in an environment, read without importing any of them."""

from __future__ import annotations

import json
from types import TracebackType

from torchbisect.containers.environment import Environment, Process

# Of Python 3.8 and up. What torch itself stands on stays an import: a repro of torch may use it.
_SERVER = r"""
import importlib.machinery, json, os, sys, sysconfig
STAY = {"torch", "torchgen", "functorch", "triton", "numpy"}
STANDARD = os.path.realpath(sysconfig.get_paths()["stdlib"])
def place_of(name):
    first, *rest = name.split(".")
    spec = importlib.machinery.PathFinder.find_spec(first)
    if first in STAY or spec is None:
        return None
    folders = list(spec.submodule_search_locations or ())
    place = os.path.realpath(folders[0] if folders else spec.origin or STANDARD)
    if place.startswith(STANDARD) and "-packages" not in place:
        return None
    for part in rest:
        if not folders:
            return None
        place = os.path.join(folders[0], part)
        folders = [place] if os.path.isdir(place) else []
        place = place if folders else place + ".py"
    return os.path.join(place, "__init__.py") if folders else place
for line in sys.stdin:
    name, told = json.loads(line), None
    try:
        place = place_of(name)
        if place and place.endswith(".py"):
            package = os.path.basename(place) == "__init__.py"
            if package and not os.path.exists(place):
                told = ["", True]
            else:
                with open(place, encoding="utf-8") as file:
                    told = [file.read(), package]
    except (OSError, ValueError, ImportError):
        pass
    print(json.dumps(told), flush=True)
"""
_ANSWER_SECONDS = 30.0


class Library:
    """The source text of what is installed in an environment beside torch.

    Args:
        environment: where to look.
    """

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._process: Process | None = None

    def __enter__(self) -> Library:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, frames: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.kill()

    def source(self, name: str) -> tuple[str, bool] | None:
        """Return the source of a module by its dotted name, and True if it is a package.

        Return ``None`` for a module that isn't installed or isn't written in Python, for the standard library, and for
        torch and numpy.
        """
        if self._process is None:
            self._process = self._environment.start(["-c", _SERVER])
        try:
            self._process.send(json.dumps(name).encode() + b"\n")
            told = json.loads(self._process.read_line(_ANSWER_SECONDS) or b"null")
        except (BrokenPipeError, ValueError):
            return None
        return (str(told[0]), bool(told[1])) if told else None
