"""Make an interpreter that has a torch of a few files installed, as a user's environment has one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

VERSION = "2.13.0"
#: The files of a torch that is there and can't be imported.
BROKEN = {
    "__init__.py": "raise ImportError('libcudnn.so.9: cannot open shared object file')\n",
    "version.py": f"__version__ = '{VERSION}'\ngit_version = 'c0ffee'\ncuda = '13.0'\n",
}


def new_environment(folder: Path) -> Path:
    """Make an empty virtual environment in a folder, and return its site-packages."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python3*/site-packages")
    return site


def install_torch(folder: Path, files: Mapping[str, str]) -> str:
    """Make a virtual environment in a folder with these files as torch, and return its Python."""
    site = new_environment(folder)
    metadata = {"METADATA": f"Name: torch\nVersion: {VERSION}\n"}
    for name, texts in (("torch", files), (f"torch-{VERSION}.dist-info", metadata)):
        (site / name).mkdir()
        for path, text in texts.items():
            (site / name / path).write_text(text)
    return str(folder / "bin/python")
