"""Pack the agent into one line of bytes, to be sent to a Python that has no torchbisect.

Nothing is written to the environment under test, on the host or in a container. A few lines passed to ``python -c``
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

# Bytes of the key that is sent before the modules.
KEY_BYTES = 32

# Python 3.8 and later, standard library only. ``get_source`` lets tracebacks show the sources. The folder that Python
# was started in is writable, so it is removed from the path before the first import. The key is read into one buffer
# and nowhere else, because the children overwrite it there. Torch makes folders of its own when it is imported, so the
# agent's folder is there before.
BOOT = f"""
import sys
sys.path[:] = [place for place in sys.path if place]
import os
key, got = bytearray({KEY_BYTES}), 0
while got < len(key):
    size = os.readv(0, [memoryview(key)[got:]])
    if not size:
        sys.exit("the key did not come")
    got += size
import base64, gc, importlib.abc, importlib.util, json, tempfile, zlib
gc.disable()  # saves a fifth of the time of importing torch; the agent enables it again
sources = json.loads(zlib.decompress(base64.b64decode(sys.stdin.buffer.readline())))
class MemoryImporter(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
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
sys.meta_path.insert(0, MemoryImporter())
with tempfile.TemporaryDirectory(prefix="a-") as folder:
    tempfile.tempdir = folder
    from {PACKAGE}.server import main
    main(key, folder)
"""


@functools.lru_cache(maxsize=1)
def payload() -> bytes:
    """Return the line that ``BOOT`` reads first: every module of the agent, compressed, in base64."""
    sources = dict(_sources(importlib.resources.files("torchbisect.probe.agent"), PACKAGE))
    return base64.b64encode(zlib.compress(json.dumps(sources, sort_keys=True).encode("utf-8"))) + b"\n"


def _sources(folder: Traversable, package: str) -> Iterator[tuple[str, str]]:
    """Yield the dotted name and the source of each module of a package and of its subpackages."""
    for item in folder.iterdir():
        if item.is_dir() and item.name != "__pycache__":
            yield from _sources(item, f"{package}.{item.name}")
        elif item.name.endswith(".py"):
            stem = item.name.removesuffix(".py")
            yield (package if stem == "__init__" else f"{package}.{stem}"), item.read_text(encoding="utf-8")
