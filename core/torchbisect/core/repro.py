"""What is asked about: a script as it is run, and the settings it is compiled with."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Repro:
    """A failing script with all that decides how it runs.

    Attributes:
        source: the script's text.
        arguments: what follows the script's name in ``sys.argv``.
        seed: set for ``random``, ``numpy`` and ``torch`` before the script starts.
        directory: the folder the script stood in, put first on ``sys.path`` so that its siblings import; ``None``
            for a script that stands alone.
        name: the script's file name, for tracebacks.
    """

    source: str
    arguments: tuple[str, ...] = ()
    seed: int = 0
    directory: str | None = None
    name: str = "repro.py"

    def with_source(self, source: str) -> Repro:
        """The same repro with another text."""
        return replace(self, source=source)

    def to_json(self) -> dict[str, Any]:
        """As the agent reads it."""
        return asdict(self)


@dataclass(frozen=True)
class Settings:
    """What is passed to or set around ``torch.compile``; ``None`` leaves the script's own choice alone.

    Attributes:
        backend: replaces the backend of every ``torch.compile`` call.
        mode: replaces the mode; ``"default"`` stands for no mode. A backend other than inductor takes none.
        dynamic: replaces ``dynamic``.
        compiled_autograd: forces compiled autograd on or off.
        knobs: pairs of a dotted name under ``torch`` (``_inductor.config.epilogue_fusion``) and its value; a name
            that this torch lacks is skipped and reported.
    """

    backend: str | None = None
    mode: str | None = None
    dynamic: bool | None = None
    compiled_autograd: bool | None = None
    knobs: tuple[tuple[str, Any], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As the agent reads it."""
        return {**asdict(self), "knobs": [list(pair) for pair in self.knobs]}


def fingerprint(*parts: Any) -> str:
    """A short stable name for values that JSON can hold; used for journal keys."""
    text = json.dumps(parts, sort_keys=True, default=str, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]
