"""Find the pass, decomposition or lowering at fault with torch's own ``compiler_bisector``.

Torch from 2.6 on can switch the parts of its back end off one by one, and count the applications of a pass that a
script needs to fail. It sees only whether the script fails, so it is asked only about one that stands alone. It keeps
its state in the compiler's cache, so it gets a cache of its own.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

from torchbisect.containers.environment import Environment
from torchbisect.core.errors import DiskFull

# Runs in the environment; the script is the only argument. Its own output goes to standard error.
_DRIVER = """\
import contextlib, json, runpy, sys
import torch, torch._dynamo
try:
    from torch._inductor.compiler_bisector import CompilerBisector
except ImportError:
    print(json.dumps({"missing": True}))
    raise SystemExit(0)
def content():
    torch._dynamo.reset()
    torch.manual_seed(int(sys.argv[2]))
    try:
        runpy.run_path(sys.argv[1], run_name="__main__")
    except SystemExit as ended:
        return not ended.code
    except Exception:
        return False
    return True
with contextlib.redirect_stdout(sys.stderr):
    found = CompilerBisector.do_bisect(content)
names = ("backend", "subsystem", "bisect_number", "debug_info")
print(json.dumps({name: getattr(found, name, None) for name in names} if found else {}))
"""


@dataclass(frozen=True)
class PassFound:
    """The answer of torch's bisector.

    Attributes:
        backend: the first backend with which the script fails.
        subsystem: the part that has to be switched off for the script to pass: ``lowerings``, ``post_grad_passes``,
            ``decomposition``, ``inductor_emulate_precision_casts``; ``None`` if no single one.
        number: the number of applications of it that the script needs to fail; ``None`` where it is either on or off.
        detail: the last of those applications.
    """

    backend: str
    subsystem: str | None
    number: int | None
    detail: str | None

    @property
    def text(self) -> str:
        """One line for people."""
        if self.subsystem is None:
            return f"{self.backend}, no single part of it"
        number = f", application {self.number}" if self.number else ""
        detail = f": {' '.join(self.detail.split())[:200]}" if self.detail and self.detail != self.subsystem else ""
        return f"{self.backend}, {self.subsystem}{number}{detail}"


def find_pass(environment: Environment, source: str, *, seed: int = 0, timeout: float = 600.0) -> PassFound | None:
    """Ask torch's own bisector about a script that stands alone: one that fails where compiled and not where not.

    Return ``None`` where this torch has no bisector, or it finds nothing wrong or comes to no end. ``timeout`` is in
    seconds, for a dozen runs of the script. Raises ``DiskFull`` if there is no room for the script.
    """
    with tempfile.TemporaryDirectory(prefix="torchbisect-passes-", ignore_cleanup_errors=True) as folder:
        try:
            Path(folder, "minimal.py").write_text(source, encoding="utf-8", errors="surrogatepass")
        except OSError as error:
            raise DiskFull(f"{folder}: {error.strerror}: the script can't be written there") from error
        extra = {
            "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor",
            "TRITON_CACHE_DIR": f"{folder}/triton",
            "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1",
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
        }
        words = ["-c", _DRIVER, "minimal.py", str(seed)]
        done = environment.run(words, timeout=timeout, directory=folder, extra=extra)
    return _read(done.output) if done.status == 0 else None


def _read(output: str) -> PassFound | None:
    lines = output.strip().splitlines()
    try:
        said = json.loads(lines[-1]) if lines else {}
    except ValueError:
        return None
    if not isinstance(said, dict) or not said.get("backend"):
        return None
    detail = said.get("debug_info")
    return PassFound(said["backend"], said.get("subsystem"), said.get("bisect_number"), detail and str(detail))
