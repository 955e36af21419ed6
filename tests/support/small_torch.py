"""Virtual environments whose torch is a single small module."""

from __future__ import annotations

import platform
from pathlib import Path

from installed_torch import new_environment

from torchbisect.containers.environment import Facts, Venv
from torchbisect.core.build import Build


def small_torch(folder: Path, version: str, source: str) -> Venv:
    """Make a virtual environment with this source as its module ``torch``."""
    (new_environment(folder / "venv") / "torch.py").write_text(source)
    homes = folder / "homes"
    homes.mkdir()
    facts = Facts(version, None, platform.python_version(), platform.platform())
    return Venv(Build(version), facts, folder / "venv" / "bin" / "python", homes)
