"""The packages that a script imports, as they are seen before it runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.core.build import Build, Channel
from torchbisect.core.repro import Repro
from torchbisect.pipeline.options import Options, repeat_command
from torchbisect.pipeline.script_packages import advice, missing_modules, outside_imports, with_found_packages

HERE, OWN = Build("2.13.0", Channel.INSTALLED), Build("2.8.0")
INTERPRETER = Interpreter(Path(sys.executable), "3.11.0", "cp311", ())


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import os, torch, numpy as np\nfrom torch._inductor import config\n", ()),
        ("import einops.layers, cv2\nfrom PIL import Image\n", ("einops", "cv2", "PIL")),
        ("import helper\nfrom data.sets import one\nimport einops\n", ("einops",)),
        ("from . import model\n", ()),
        ("try:\n    import einops\nexcept ImportError:\n    einops = None\n", ()),
        ("if False:\n    import einops\n\n\ndef f():\n    import einops\n", ()),
        ("model.eval()\nimport einops\n", ("einops",)),
        ("import sys\nsys.path.insert(0, 'lib')\nimport mine\n", ()),
        ("import sys\nsys.modules['einops'] = sys\nimport einops\n", ()),
        ("import subprocess\nsubprocess.run(['pip', 'install', 'einops'])\nimport einops\n", ()),
        ("import sets_the_path\nimport mine\n", ()),
    ],
)
def test_only_imports_that_every_run_makes_are_found(source: str, found: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("X = 1\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "sets_the_path.py").write_text("import sys\nsys.path.append('lib')\n")
    assert outside_imports(Repro(source, directory=str(tmp_path))) == found


def test_the_python_of_an_installed_torch_is_asked() -> None:
    repro = Repro("import torch\nimport pytest\nimport nosuchmodule\nimport hypothesis\n")
    assert list(missing_modules(Options(Path("a.py")), INTERPRETER, HERE, repro)) == ["nosuchmodule"]


def test_an_environment_of_our_own_has_torch_and_what_with_names() -> None:
    repro = Repro("import torch\nimport pytest\n")
    assert list(missing_modules(Options(Path("a.py")), INTERPRETER, OWN, repro)) == ["pytest"]
    for options in (
        Options(Path("a.py"), packages=("pytest",)),
        Options(Path("a.py"), sandbox="docker", image="mine"),
        Options(Path("a.py"), test="make"),
        Options(Path("test_a.py::test_b")),
    ):
        assert list(missing_modules(options, INTERPRETER, OWN, repro)) == []


def test_the_advice_fits_the_build() -> None:
    options = Options(Path("a.py"), command="check")
    assert advice(options, HERE, ["PIL", "einops"]) == "the installed torch is used, so type pip install pillow einops"
    assert advice(options, OWN, ["PIL"]) == "add --with pillow (or --with auto)"
    other = Options(Path("a.py"), python="/opt/my python", command="bisect")
    assert advice(other, HERE, ["einops"]).endswith(
        "type '/opt/my python' -m pip install einops, and add --with einops for other builds"
    )


def test_auto_stands_for_the_imports_of_the_script() -> None:
    said: list[str] = []
    options = Options(Path("a.py"), packages=("auto", "pillow<11"))
    found = with_found_packages(options, Repro("import PIL, yaml, einops\n"), said.append)
    assert found.packages == ("pillow<11", "pyyaml", "einops")
    assert said == ["--with auto: pyyaml, einops"]
    assert "--with pyyaml" in repeat_command(found, "a.py")
    assert with_found_packages(Options(Path("a.py")), Repro("import PIL\n"), said.append).packages == ()
