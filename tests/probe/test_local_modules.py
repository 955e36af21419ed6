"""The modules beside a script are part of the question."""

from __future__ import annotations

import os
from pathlib import Path

from torchbisect.probe.module_sources import siblings_digest

SOURCE = "import torch\nfrom model import Net\n"


def _change(path: Path, text: str) -> None:
    """Write a file, and move its time on: two writes within a clock's tick would look like one."""
    path.write_text(text)
    after = path.stat().st_mtime_ns + 10**9
    os.utime(path, ns=(after, after))


def test_a_script_without_imports_has_no_local_modules(tmp_path: Path) -> None:
    assert siblings_digest(SOURCE, None) == ""
    assert siblings_digest(SOURCE, str(tmp_path)) == ""
    assert siblings_digest("not python (", str(tmp_path)) == ""


def test_a_changed_module_changes_the_digest(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("import layers\n")
    (tmp_path / "layers.py").write_text("x = 1\n")
    (tmp_path / "unused.py").write_text("x = 1\n")
    first = siblings_digest(SOURCE, str(tmp_path))
    assert first == siblings_digest(SOURCE, str(tmp_path)) != ""
    _change(tmp_path / "unused.py", "x = 2\n")
    assert siblings_digest(SOURCE, str(tmp_path)) == first
    _change(tmp_path / "layers.py", "x = 2\n")
    assert siblings_digest(SOURCE, str(tmp_path)) != first


def test_packages_and_relative_imports_are_followed(tmp_path: Path) -> None:
    package = tmp_path / "model"
    package.mkdir()
    (package / "__init__.py").write_text("from .net import Net\n")
    (package / "net.py").write_text("from ..elsewhere import x\nfrom . import parts\n")
    (package / "parts.py").write_text("")
    first = siblings_digest(SOURCE, str(tmp_path))
    _change(package / "parts.py", "changed = True\n")
    assert siblings_digest(SOURCE, str(tmp_path)) != first


def test_circular_imports_terminate(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("import other\n")
    (tmp_path / "other.py").write_text("import model\n")
    assert siblings_digest(SOURCE, str(tmp_path))
