"""The options of a call that is checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class CheckOptions:
    """The way in which a callable is compiled and called.

    Attributes:
        compile: the options of ``torch.compile``: ``{"backend": "eager", "dynamic": True}``.
        backward: run a backward from the sum of the outputs that require a gradient, and compare the gradients.
        seed: set for every random generator before each run.
        out: the folder of the report, and of the script if there is a mismatch.
        run: further options of a run, by their names in ``torchbisect.pipeline.options.Options``.
    """

    compile: Mapping[str, Any] = field(default_factory=dict)
    backward: bool = True
    seed: int = 0
    out: Path | str = "torchbisect-out"
    run: Mapping[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """The folder of the results."""
        return Path(self.out)
