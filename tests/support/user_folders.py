"""Scripts in the folders that users have: data, packages, tests, notebooks; each works under plain python."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

#: What every script does in the end.
COMPILED = """
import torch
print(torch.compile(lambda x: x.sin() + 1, backend="eager")(torch.ones(2)))
"""


def script_text(lines: str, *, compiled: bool = True) -> str:
    """Return an indented text flush left, followed by a compiled call."""
    return textwrap.dedent(lines).lstrip("\n") + (COMPILED if compiled else "")


def notebook_text(*cells: str) -> str:
    """Return a notebook with these cells of code."""
    written = [{"cell_type": "code", "source": cell, "outputs": [], "metadata": {}} for cell in cells]
    return json.dumps({"cells": written, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


@dataclass(frozen=True)
class Folder:
    """A folder and the words that are typed in it.

    Attributes:
        files: the text of each file, by its path.
        words: as they follow ``python``, and ``torchbisect check``.
        where: the folder where they are typed.
        links: the target of each symbolic link, by its path.
        plain: the words for plain python where they are others.
        typed_input: standard input.
        shell: variables of the shell.
    """

    files: Mapping[str, str]
    words: tuple[str, ...] = ("train.py",)
    where: str = "."
    links: Mapping[str, str] = field(default_factory=dict)
    plain: tuple[str, ...] = ()
    typed_input: str = ""
    shell: Mapping[str, str] = field(default_factory=dict)

    def make(self, root: Path) -> Path:
        """Write it below ``root``; return the folder where the words are typed."""
        for name, text in self.files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        for name, target in self.links.items():
            (root / name).symlink_to(target)
        return root / self.where


def _notebook(*cells: str) -> str:
    written = [
        {"cell_type": "code", "source": cell.splitlines(keepends=True), "outputs": [], "metadata": {}} for cell in cells
    ]
    return json.dumps({"cells": [{"cell_type": "markdown", "source": "# title"}, *written], "nbformat": 4})


_PACKAGE = {
    "pkg/__init__.py": "NAME = 'pkg'\n",
    "pkg/model.py": "import torch\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x.sin()\n",
    "pkg/train.py": (
        "import argparse\nimport torch\nfrom . import NAME\nfrom .model import Net\n"
        "parser = argparse.ArgumentParser()\nparser.add_argument('--epochs', type=int, required=True)\n"
        "for _ in range(parser.parse_args().epochs):\n"
        "    torch.compile(Net(), backend='eager')(torch.ones(2))\nassert __name__ == '__main__' and NAME\n"
    ),
}
_TEST = """
import pytest
import torch

@pytest.fixture
def model(scale):
    return torch.compile(lambda x: x * scale, backend="eager")

@pytest.mark.parametrize("size", [2, 3])
def test_step(model, size, tmp_path):
    assert model(torch.ones(size)).sum() == 2 * size
    (tmp_path / "out.txt").write_text("done")

class TestMore:
    def test_method(self, model):
        assert model(torch.ones(2)).sum() == 4
"""
_TESTS = {
    "tests/test_model.py": _TEST,
    "tests/conftest.py": "import pytest\n\n@pytest.fixture\ndef scale():\n    return 2\n",
}

FOLDERS: dict[str, Folder] = {
    "data beside the script, by a relative path": Folder(
        {"train.py": "rows = open('data.csv').read().split()\nassert rows == ['1', '2']\n" + COMPILED,
         "data.csv": "1\n2\n"}
    ),
    "data by the folder of the script, from another folder": Folder(
        {
            "project/train.py": "import os\nHERE = os.path.dirname(__file__)\nopen(os.path.join(HERE, 'data.csv'))\n"
            + COMPILED,
            "project/data.csv": "1",
            "elsewhere/empty.txt": "",
        },
        ("../project/train.py",),
        "elsewhere",
    ),
    "data of the working directory, script elsewhere": Folder(
        {"scripts/train.py": "assert open('data/a.txt').read() == 'x'\n" + COMPILED, "data/a.txt": "x"},
        ("scripts/train.py",),
    ),
    "a module of a package": Folder(_PACKAGE, ("-m", "pkg.train", "--epochs", "1")),
    "a package with __main__": Folder(
        {**_PACKAGE, "pkg/__main__.py": "from .model import Net\n" + COMPILED}, ("-m", "pkg")
    ),
    "a file with relative imports": Folder(
        _PACKAGE, ("pkg/train.py", "--epochs", "1"), plain=("-m", "pkg.train", "--epochs", "1")
    ),
    "a test with fixtures and conftest": Folder(
        _TESTS, ("tests/test_model.py::test_step",), plain=("-m", "pytest", "tests/test_model.py::test_step")
    ),
    "one case of a parametrized test": Folder(
        _TESTS, ("tests/test_model.py::test_step[3]",), plain=("-m", "pytest", "tests/test_model.py::test_step[3]")
    ),
    "a test in a class": Folder(
        _TESTS,
        ("tests/test_model.py::TestMore::test_method",),
        plain=("-m", "pytest", "tests/test_model.py::TestMore::test_method"),
    ),
    "a notebook": Folder(
        {"work.ipynb": _notebook("%matplotlib inline\nimport torch\n!nvidia-smi", "%%time\nvalue = 7 % 4", COMPILED)},
        ("work.ipynb",),
        plain=("-c", COMPILED),
    ),
    "data on standard input": Folder(
        {
            "train.py": "import os, sys\nassert sys.stdin.readline() == 'a\\n' and not sys.stdin.isatty()\n"
            "assert [line for line in sys.stdin] == ['b\\n', 'ü'] and sys.stdin.read() == ''\n"
            "assert os.listdir('.') == ['train.py'], os.listdir('.')\n" + COMPILED
        },
        typed_input="a\nb\nü",
    ),
    "data on standard input, read by a module and by input()": Folder(
        {
            "train.py": "from rows import first\nassert first() == 'x,y' and input() == '1,2'\n"
            "assert open('a.txt').read() == 'z'\n" + COMPILED,
            "rows.py": "import sys\ndef first():\n    return sys.stdin.buffer.readline().decode().strip()\n",
            "a.txt": "z",
        },
        typed_input="x,y\n1,2\n",
    ),
    "standard input that is empty": Folder({"train.py": "import sys\nassert sys.stdin.read() == ''\n" + COMPILED}),
    "a file as an argument that may be standard input": Folder(
        {
            "train.py": "import argparse\nparser = argparse.ArgumentParser()\n"
            "parser.add_argument('file', type=argparse.FileType('r'))\n"
            "assert parser.parse_args().file.read() == 'abc'\n" + COMPILED
        },
        ("train.py", "-"),
        typed_input="abc",
    ),
    "standard input": Folder({"helper.py": "x = 1\n"}, ("-",), typed_input="import helper\n" + COMPILED),
    "arguments as python takes them": Folder(
        {
            "train.py": "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--n', type=int,"
            " required=True)\nparser.add_argument('--out')\nassert parser.parse_args().n == 6\n" + COMPILED
        },
        ("train.py", "--n", "6", "--out", "x"),
    ),
    "the name as typed": Folder(
        {"a/train.py": "import sys\nassert sys.argv == ['a/train.py', '-v'], sys.argv\n" + COMPILED},
        ("a/train.py", "-v"),
    ),
    "a configuration": Folder(
        {
            "train.py": "import json\nfrom dataclasses import dataclass\n@dataclass\nclass Config:\n    width: int\n"
            "config = Config(**json.load(open('conf/base.json')))\nassert config.width == 4\n" + COMPILED,
            "conf/base.json": '{"width": 4}',
        }
    ),
    "an output file that is read again": Folder(
        {
            "train.py": "import os, torch\nos.makedirs('runs/a')\ntorch.save(torch.ones(2), 'runs/a/x.pt')\n"
            "assert torch.load('runs/a/x.pt').sum() == 2\n" + COMPILED
        }
    ),
    "a file that is appended to and one that is removed": Folder(
        {
            "train.py": "import os\nopen('log.txt', 'a').write('more')\nassert open('log.txt').read() == 'log\\nmore'\n"
            "os.remove('old.txt')\n" + COMPILED,
            "log.txt": "log\n",
            "old.txt": "",
        }
    ),
    "another working directory": Folder(
        {"train.py": "import os\nos.chdir('data')\nopen('a.txt')\n" + COMPILED, "data/a.txt": "x"}
    ),
    "the folder above on the path": Folder(
        {"project/lib.py": "x = 1\n",
         "project/scripts/train.py": "import sys\nsys.path.insert(0, '..')\nimport lib\n" + COMPILED},
        where="project/scripts",
    ),
    "the project's root by the script's path": Folder(
        {
            "project/data/a.txt": "x",
            "project/scripts/train.py": "from pathlib import Path\nROOT = Path(__file__).resolve().parents[1]\n"
            "assert (ROOT / 'data' / 'a.txt').read_text() == 'x'\n" + COMPILED,
        },
        ("scripts/train.py",),
        "project",
    ),
    "modules by PYTHONPATH": Folder(
        {
            "scripts/train.py": "from model import Net\nimport common.util\nassert Net.WIDTH == 3\n"
            "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import model'], check=True)\n" + COMPILED,
            "src/model/__init__.py": "from .net import Net\n",
            "src/model/net.py": "from pathlib import Path\nimport common\nclass Net:\n"
            "    WIDTH = int((Path(__file__).parent / 'width.txt').read_text())\n",
            "src/model/width.txt": "3",
            "lib/common/__init__.py": "",
            "lib/common/util.py": "import torch\n",
        },
        ("scripts/train.py",),
        shell={"PYTHONPATH": "src:lib:nowhere"},
    ),
    "a module by PYTHONPATH, of the folder above": Folder(
        {"work/train.py": "import helper\nassert helper.X == 1\n" + COMPILED, "helper.py": "X = 1\n"},
        where="work",
        shell={"PYTHONPATH": ".."},
    ),
    "a module that is imported by name": Folder(
        {"train.py": "import importlib\nassert importlib.import_module('plugins.one').x == 1\n" + COMPILED,
         "plugins/one.py": "x = 1\n"}
    ),
    "a pattern of files": Folder(
        {"train.py": "import glob\nassert len(glob.glob('parts/*.txt')) == 2\n" + COMPILED,
         "parts/a.txt": "", "parts/b.txt": ""}
    ),
    "a link inside the folder": Folder(
        {"train.py": "assert open('latest/a.txt').read() == 'x'\nassert open('short').read() == 'x'\n" + COMPILED,
         "v1/a.txt": "x"},
        links={"latest": "v1", "short": "v1/a.txt"},
    ),
    "a script beside it in a process of its own": Folder(
        {"train.py": "import subprocess, sys\nsubprocess.run([sys.executable, 'prepare.py'], check=True)\n"
         "assert open('made.txt').read() == 'made'\n" + COMPILED,
         "prepare.py": "open('made.txt', 'w').write('made')\n"}
    ),
    "workers that are spawned": Folder(
        {"train.py": "import multiprocessing\n\ndef work(x):\n    return x + 1\n\nif __name__ == '__main__':\n"
         "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n        assert pool.map(work, [1]) == [2]\n"
         + COMPILED.replace("\n", "\n    ")}
    ),
    "an environment variable and a hidden file that it names": Folder(
        {
            "train.py": "import os\nassert open('.settings').read() == 'x'\nassert os.environ['PWD'] == os.getcwd()\n"
            + COMPILED,
            ".settings": "x",
        }
    ),
    "data above the folder of a package": Folder(
        {
            "data/a.txt": "x",
            "src/pkg/__init__.py": "",
            "src/pkg/paths.py": "from pathlib import Path\nROOT = Path(__file__).parent.parent.parent\n",
            "src/pkg/train.py": "from pkg.paths import ROOT\nassert (ROOT / 'data/a.txt').read_text() == 'x'\n"
            + COMPILED,
        },
        ("-m", "pkg.train"),
        "src",
    ),
    "a script that is run through a link": Folder(
        {"shared/real.py": "import beside\n" + COMPILED, "shared/beside.py": "", "work/x.txt": ""},
        where="work",
        links={"work/train.py": "../shared/real.py"},
    ),
    "a text of its own": Folder(
        {"train.py": "import inspect, sys\nassert 'inspect' in open(__file__).read()\n"
         "assert inspect.getsource(sys.modules['__main__'])\n" + COMPILED}
    ),
    "a folder that is written as a string": Folder(
        {"train.py": "import os\nclass Folder:\n    def __init__(self, root):\n"
         "        assert os.listdir(root) == ['a.txt']\n"
         "Folder('images')\n" + COMPILED, "images/a.txt": "x"}
    ),
}  # fmt: skip
