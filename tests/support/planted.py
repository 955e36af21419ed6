"""Copies of the installed torch, by hard links, under another version and with other Python."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

EVAL_FRAME = "torch/_dynamo/eval_frame.py"


def planted(folder: Path, version: str, patch: str = "", commit: str = "") -> Path:
    """Make a Python with a copy of the installed torch of another version, to whose compiler ``patch`` is added.

    ``commit`` stands for the one that it was built from.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    here = Path(sysconfig.get_path("purelib"))
    place = next(folder.glob("lib/python*/site-packages"))
    for found in (here / "torch", *here.glob("torch-*.dist-info")):
        name = found.name if found.name == "torch" else f"torch-{version}.dist-info"
        # Hard links: a copy is 700 MB.
        subprocess.run(["cp", "-al", str(found), str(place / name)], check=True)
    (place / "rest.pth").write_text(f"{here}\n")
    rewrite(place / "torch/version.py", lambda text: _of_commit(_of_version(text, version), commit))
    rewrite(place / EVAL_FRAME, lambda text: f"{text}\n{patch}\n")
    rewrite(
        place / f"torch-{version}.dist-info/METADATA",
        lambda text: re.sub(r"^Version: .*$", f"Version: {version}", text, count=1, flags=re.MULTILINE),
    )
    return folder / "bin" / "python"


def rewrite(path: Path, change: Callable[[str], str]) -> None:
    """Change a file that is a hard link; the other name keeps its text."""
    text = change(path.read_text())
    path.unlink()
    path.write_text(text)


def _of_version(text: str, version: str) -> str:
    return text.replace("__version__ = '2", f"__version__ = '{version}' or '2")


def _of_commit(text: str, commit: str) -> str:
    return re.sub(r"^git_version = .*$", f"git_version = {commit!r}", text, flags=re.MULTILINE) if commit else text
