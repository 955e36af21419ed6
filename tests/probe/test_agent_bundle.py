"""The bundle carries every module of the agent, as source that Python can compile."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path

import torchbisect.probe.agent
from torchbisect.probe.agent_bundle import BOOT, PACKAGE, payload


def test_the_bundle_has_every_module_and_each_compiles() -> None:
    sources = json.loads(zlib.decompress(base64.b64decode(payload())))
    folder = Path(next(iter(torchbisect.probe.agent.__path__)))
    names = [path.relative_to(folder).with_suffix("").parts for path in folder.rglob("*.py")]
    modules = {".".join((PACKAGE, *(part for part in parts if part != "__init__"))) for parts in names}
    assert set(sources) == modules
    for name, source in sources.items():
        compile(source, name, "exec")
    compile(BOOT, "boot", "exec")
    assert payload().count(b"\n") == 1
