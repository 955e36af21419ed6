"""Bodies of issues of PyTorch's tracker, retold: their form and facts, with small scripts of our own.

The first line of a file states its title and what is to be found in it; ``origin`` is the issue whose form it has.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "triage" / "bodies"
_HEAD, _TAIL = "<!-- expect: ", " -->\n"


@dataclass(frozen=True)
class RetoldBody:
    """A body and what is to be found in it."""

    name: str
    body: str
    expect: dict[str, Any]

    @property
    def title(self) -> str:
        """The title of the issue."""
        return str(self.expect["title"])


def retold_bodies() -> list[RetoldBody]:
    """Return all bodies, by name."""
    found = []
    for path in sorted(FOLDER.glob("*.md")):
        first, _, body = path.read_bytes().decode().partition("\n")
        found.append(RetoldBody(path.stem, body, json.loads(f"{first}\n".removeprefix(_HEAD).removesuffix(_TAIL))))
    return found
