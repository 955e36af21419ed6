"""The agent as one string of bytes, to be sent to a Python that has no torchbisect.

Nothing is written into the environment under test, on the host or in a container: a few lines given to ``python -c``
read the agent's modules from standard input and import them from memory.
"""

from __future__ import annotations

import base64
import functools
import importlib.resources
import json
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

PACKAGE = "_torchbisect_agent"

# Python 3.8 up, standard library only. The sources stay readable for tracebacks: the loader has ``get_source``.
BOOT = f"""
import base64, gc, importlib.abc, importlib.util, json, sys, zlib
gc.disable()  # a fifth of the time that torch's imports take; the agent turns it on again
sources = json.loads(zlib.decompress(base64.b64decode(sys.stdin.buffer.readline())))
class Memory(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    def find_spec(self, name, path=None, target=None):
        if name in sources:
            origin = "<torchbisect " + name.rpartition(".")[2] + ">"
            return importlib.util.spec_from_loader(name, self, origin=origin, is_package=self.is_package(name))
    def get_source(self, name):
        return sources[name]
    def is_package(self, name):
        return any(other.startswith(name + ".") for other in sources)
    def get_code(self, name):
        return compile(sources[name], "<torchbisect " + name.rpartition(".")[2] + ">", "exec", dont_inherit=True)
sys.meta_path.insert(0, Memory())
from {PACKAGE}.server import main
main()
"""


@functools.lru_cache(maxsize=1)
def payload() -> bytes:
    """The line that ``BOOT`` reads first: every module of the agent, packed."""
    sources = dict(_sources(importlib.resources.files("torchbisect.probe.agent"), PACKAGE))
    return base64.b64encode(zlib.compress(json.dumps(sources, sort_keys=True).encode("utf-8"))) + b"\n"


def _sources(folder: Traversable, package: str) -> Iterator[tuple[str, str]]:
    """The dotted name and the text of each module of a package and of its subpackages."""
    for item in folder.iterdir():
        if item.is_dir() and item.name != "__pycache__":
            yield from _sources(item, f"{package}.{item.name}")
        elif item.name.endswith(".py"):
            stem = item.name.removesuffix(".py")
            yield (package if stem == "__init__" else f"{package}.{stem}"), item.read_text(encoding="utf-8")
