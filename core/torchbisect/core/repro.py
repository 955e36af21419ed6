"""A repro and its settings: the script as it is run, and how it is compiled."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Repro:
    """A failing script with everything that decides how it runs.

    Attributes:
        source: the script's text.
        arguments: the entries of ``sys.argv`` after the script's name.
        seed: set for ``random``, ``numpy`` and ``torch`` before the script starts.
        directory: the script's folder, put first on ``sys.path`` so that modules beside the script can be imported;
            ``None`` for a script that stands alone.
        name: the script's file name, for tracebacks.
    """

    source: str
    arguments: tuple[str, ...] = ()
    seed: int = 0
    directory: str | None = None
    name: str = "repro.py"

    def with_source(self, source: str) -> Repro:
        """Return the same repro with another text."""
        return replace(self, source=source)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON that the agent reads."""
        return asdict(self)


@dataclass(frozen=True)
class Settings:
    """Settings that are passed to or set around ``torch.compile``; ``None`` keeps the script's own choice.

    Attributes:
        backend: replaces the backend of every ``torch.compile`` call.
        mode: replaces the mode; ``"default"`` means no mode. Only inductor takes a mode.
        dynamic: replaces ``dynamic``.
        compiled_autograd: turns compiled autograd on or off.
        knobs: compiler flags as pairs of a dotted name under ``torch`` (``_inductor.config.epilogue_fusion``) and a
            value. A flag that this torch lacks is skipped and reported.
    """

    backend: str | None = None
    mode: str | None = None
    dynamic: bool | None = None
    compiled_autograd: bool | None = None
    knobs: tuple[tuple[str, Any], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the JSON that the agent reads."""
        return {**asdict(self), "knobs": [list(pair) for pair in self.knobs]}


def fingerprint(*parts: Any) -> str:
    """Return a short stable name for values that JSON can hold, for use as a journal key."""
    text = json.dumps(parts, sort_keys=True, default=str, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]
