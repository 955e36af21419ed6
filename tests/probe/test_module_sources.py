"""The modules beside a script, which are part of the question, and the sources of installed libraries."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import networkx
import pytest

from torchbisect.containers.environment import Facts, Venv
from torchbisect.core.build import Build
from torchbisect.probe.module_sources import Library, module_source, siblings_digest

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


@pytest.fixture
def library(tmp_path: Path):
    with Library(Venv(Build("0"), Facts("0", None, "3", "here"), Path(sys.executable), tmp_path)) as library:
        yield library


def test_sources_of_a_library_by_module_name(library: Library) -> None:
    root = Path(networkx.__file__).parent
    assert library.source("networkx") == ((root / "__init__.py").read_text(), True)
    assert library.source("networkx.utils.misc") == ((root / "utils" / "misc.py").read_text(), False)


@pytest.mark.parametrize(
    "name",
    ["torch", "torch.nn", "numpy", "json", "sys", "nosuch", "networkx.nosuch", "networkx.utils.misc.flatten"],
)
def test_modules_that_stay_imports(library: Library, name: str) -> None:
    assert library.source(name) is None
    assert library.source("networkx") is not None, "the next one is answered"


def test_modules_beside_a_script(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c.py").write_text("x = 1\n")
    (tmp_path / "d.py").write_text("y = 2\n")
    (tmp_path / "a" / "__init__.py").write_text("z = 3\n")
    assert module_source(str(tmp_path), "a") == ("z = 3\n", True)
    assert module_source(str(tmp_path), "a.b") == ("", True), "a folder without an __init__ is a package too"
    assert module_source(str(tmp_path), "a.b.c") == ("x = 1\n", False)
    assert module_source(str(tmp_path), "d") == ("y = 2\n", False)
    assert module_source(str(tmp_path), "e") is None
    assert module_source(str(tmp_path), "d.f") is None
