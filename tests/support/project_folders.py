"""Projects as users have them, each with several of the things that a single script lacks."""

from __future__ import annotations

from user_folders import COMPILED, Folder, notebook_text, script_text

PROJECTS = {
    "workers of a data loader, and a log": Folder(
        {
            "values.txt": "1\n2\n3\n4\n",
            "numbers_of.py": script_text("""
                import torch
                class Numbers(torch.utils.data.Dataset):
                    def __init__(self, path):
                        self.values = [float(line) for line in open(path)]
                    def __len__(self):
                        return len(self.values)
                    def __getitem__(self, index):
                        return torch.tensor([self.values[index]])
                """, compiled=False),
            "train.py": script_text("""
                import logging, os
                import torch
                from torch.utils.data import DataLoader
                from numbers_of import Numbers
                os.makedirs("logs", exist_ok=True)
                logging.basicConfig(filename="logs/train.log", filemode="w", level=logging.INFO)
                def main():
                    step = torch.compile(torch.nn.Linear(1, 1), backend="eager")
                    for batch in DataLoader(Numbers("values.txt"), batch_size=2, num_workers=2):
                        logging.info("loss %s", step(batch).sum().item())
                    assert open("logs/train.log").read().count("loss") == 2
                if __name__ == "__main__":
                    main()
                """),
        }
    ),
    "a folder src, resources and a configuration": Folder(
        {
            "pyproject.toml": "[project]\nname = 'acme'\n[tool.acme]\nwidth = 3\n",
            "src/acme/__init__.py": "",
            "src/acme/assets/__init__.py": "",
            "src/acme/assets/words.txt": "a\nb\n",
            "src/acme/config.py": script_text("""
                from __future__ import annotations
                from dataclasses import dataclass, field
                from importlib import resources
                @dataclass(frozen=True)
                class Config:
                    width: int = 3
                    words: list[str] = field(default_factory=list)
                def load() -> Config:
                    return Config(words=(resources.files("acme.assets") / "words.txt").read_text().split())
                """, compiled=False),
            "scripts/train.py": script_text("""
                import pathlib, sys
                ROOT = pathlib.Path(__file__).resolve().parents[1]
                sys.path.insert(0, str(ROOT / "src"))
                from acme.config import load
                assert load().words == ["a", "b"]
                assert "width = 3" in (ROOT / "pyproject.toml").read_text()
                """),
        },
        ("scripts/train.py",),
    ),
    "a test with fixtures of every kind": Folder(
        {
            "conftest.py": script_text("""
                import pytest
                import torch
                @pytest.fixture(autouse=True)
                def seeded():
                    torch.manual_seed(3)
                    yield
                @pytest.fixture
                def width(request):
                    return request.param * 2
                """, compiled=False),
            "tests/unit/test_step.py": script_text("""
                import json, os
                import pytest, torch
                class TestStep:
                    @pytest.fixture(autouse=True)
                    def _prepared(self, tmp_path, monkeypatch):
                        (tmp_path / "n.json").write_text(json.dumps({"n": 3}))
                        monkeypatch.setenv("ACME_FILE", str(tmp_path / "n.json"))
                        monkeypatch.chdir(tmp_path)
                    @pytest.mark.parametrize("width", [2, 3], indirect=True)
                    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
                    def test_step(self, width, dtype):
                        n = json.load(open(os.environ["ACME_FILE"]))["n"]
                        x = torch.zeros(width, dtype=dtype)
                        f = lambda x: x + n
                        torch.testing.assert_close(torch.compile(f, backend="eager")(x), f(x))
                """, compiled=False),
        },
        ("tests/unit/test_step.py::TestStep::test_step",),
        plain=("-m", "pytest", "-q", "tests/unit/test_step.py::TestStep::test_step"),
    ),
    "a notebook with names of IPython": Folder(
        {
            "nb/My work.ipynb": notebook_text(
                "%load_ext autoreload\n%autoreload 2\n!pip install einops",
                "import sys\nsys.path.append('..')\nimport torch",
                "%%bash\necho hello",
                "%matplotlib inline\nfrom helper import scale\nin_colab = 'google.colab' in str(get_ipython())",
                "%%time\nx = torch.compile(lambda x: x * scale, backend='eager')(torch.ones(2))",
                "sys?\ndisplay(x)\nassert not in_colab",
            ),
            "helper.py": "scale = 5\n",
        },
        ("My work.ipynb",),
        "nb",
        plain=("-c", "print('a notebook')"),
    ),
    "subcommands, overrides and a configuration": Folder(
        {
            "conf/base.json": '{"model": {"dim": 4}}',
            "main.py": script_text("""
                import argparse, json
                from pathlib import Path
                parser = argparse.ArgumentParser()
                train = parser.add_subparsers(dest="command", required=True).add_parser("train")
                train.add_argument("--config-name", required=True)
                train.add_argument("-v", action="count", default=0)
                train.add_argument("--json", action="store_true")
                train.add_argument("overrides", nargs="*")
                given = parser.parse_args()
                config = json.loads((Path("conf") / f"{given.config_name}.json").read_text())
                assert config["model"]["dim"] == 4 and given.v == 2 and given.json
                assert given.overrides == ["model.dim=8", "+trainer.epochs=1"]
                """),
        },
        ("main.py", "train", "--config-name", "base", "-vv", "--json", "model.dim=8", "+trainer.epochs=1"),
    ),
    "a script that changes the working directory": Folder(
        {
            "work/scale.cfg": "3",
            "checkpoint/w.txt": "1",
            "tools/train.py": script_text("""
                import os
                HERE = os.path.dirname(os.path.abspath(__file__))
                os.chdir(os.path.join(HERE, "..", "work"))
                assert open("scale.cfg").read() == "3"
                assert open(os.path.join(HERE, os.pardir, "checkpoint", "w.txt")).read() == "1"
                """),
        },
        where="tools",
    ),
    "a package with a registry, and files as arguments": Folder(
        {
            "app/__init__.py": "from .core import build\n__all__ = ['build']\n",
            "app/core.py": script_text("""
                import torch
                from .registry import TABLE, register
                @register("double")
                class Double(torch.nn.Module):
                    def forward(self, x):
                        return x * 2
                def build(name):
                    return TABLE[name]()
                """, compiled=False),
            "app/registry.py": script_text("""
                TABLE = {}
                def register(name):
                    def decorate(cls):
                        TABLE[name] = cls
                        return cls
                    return decorate
                """, compiled=False),
            "app/__main__.py": script_text("""
                import argparse, os, torch
                from . import build
                parser = argparse.ArgumentParser(prog="app")
                parser.add_argument("--torch")
                parser.add_argument("files", nargs="+")
                files = parser.parse_args().files
                assert all(map(os.path.exists, files)), files
                print(torch.compile(build("double"), backend="eager")(torch.ones(len(files))))
                """, compiled=False),
            "a.txt": "",
            "b.txt": "",
        },
        ("-m", "app", "--torch", "x", "a.txt", "b.txt"),
    ),
    "coroutines, and no suffix": Folder(
        {
            "train": script_text("""
                #!/usr/bin/env python3
                import asyncio, torch
                async def main():
                    await asyncio.sleep(0)
                    print(torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2)))
                asyncio.run(main())
                """, compiled=False)
        },
        ("train",),
    ),
    "threads, temporary files and a process": Folder(
        {
            "train.py": script_text("""
                import atexit, concurrent.futures, pickle, subprocess, sys, tempfile, torch
                atexit.register(print, "bye")
                step = torch.compile(lambda x: x * 2, backend="eager")
                with concurrent.futures.ThreadPoolExecutor(2) as pool:
                    assert [t.item() for t in pool.map(step, [torch.ones(1), torch.zeros(1)])] == [2, 0]
                # A global with the random name would be a value that is another one in each run.
                def there_and_back(value):
                    with tempfile.TemporaryDirectory() as folder:
                        open(folder + "/x", "wb").write(pickle.dumps(value))
                        return pickle.load(open(folder + "/x", "rb"))
                assert there_and_back(step(torch.ones(2))).sum() == 4
                assert subprocess.check_output([sys.executable, "-c", "print(1)"], text=True) == "1\\n"
                """, compiled=False)
        }
    ),
    "tests of unittest": Folder(
        {
            "my tests (1).py": script_text("""
                # -*- coding: utf-8 -*-
                import unittest, torch
                class StepTest(unittest.TestCase):
                    def setUp(self):
                        self.x = torch.ones(2)
                    def test_sin(self):
                        self.assertTrue(torch.equal(torch.compile(torch.sin, backend="eager")(self.x), self.x.sin()))
                if __name__ == "__main__":
                    unittest.main()
                """, compiled=False)
        },
        ("my tests (1).py",),
    ),
    "a status by sys.exit": Folder(
        {
            "train.py": script_text("""
                import sys, torch
                def main(arguments=None) -> int:
                    n = int((arguments or sys.argv[1:])[0])
                    print(torch.compile(lambda x: x.repeat(n), backend="eager")(torch.ones(1)).shape)
                    return 0
                if __name__ == "__main__":
                    sys.exit(main())
                """, compiled=False)
        },
        ("train.py", "3"),
    ),
    "a variable of the shell": Folder(
        {"train.py": "import os\nassert os.environ['ACME_MODE'] == 'a \\'b\\''\n" + COMPILED},
        shell={"ACME_MODE": "a 'b'"},
    ),
}  # fmt: skip
