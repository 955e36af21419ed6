"""The text of what is installed, and of nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

import networkx
import pytest

from torchbisect.containers.environment import Facts
from torchbisect.containers.venv.venv import Venv
from torchbisect.core.build import Build
from torchbisect.probe.module_sources import Library, module_source


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
