"""Find the pass, decomposition or lowering at fault with torch's own ``compiler_bisector``.

Torch from 2.6 on can switch the parts of its back end off one by one, and count the applications of a pass that a
script needs to fail. It sees only whether the script fails, so it is asked only about one that stands alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from torchbisect.probe.agent_client import ToolAnswer


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


def read_pass(found: ToolAnswer) -> PassFound | None:
    """Return the answer of the agent's tool, or ``None`` if this torch has no bisector, or it found nothing wrong."""
    if not found.backend:
        return None
    return PassFound(found.backend, found.subsystem, found.bisect_number, found.debug_info)
