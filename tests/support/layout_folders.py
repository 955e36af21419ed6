"""More folders as users have them, by how they are laid out: packages, encodings, data in odd places, loaders."""

from __future__ import annotations

from user_folders import COMPILED, Folder, notebook_text, script_text

_PACKAGE = {
    "acme/__init__.py": "from .layers import Net\n__all__ = ['Net']\n",
    "acme/layers/__init__.py": "from .net import Net\n",
    "acme/layers/net.py": script_text("""
        import torch
        from ..config import WIDTH
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = torch.nn.Linear(WIDTH, 1)
            def forward(self, x):
                return self.linear(x).relu()
        """, compiled=False),
    "acme/config.py": "import os, json\nHERE = os.path.dirname(__file__)\n"
    "WIDTH = json.load(open(os.path.join(HERE, 'width.json')))\n",
    "acme/width.json": "4",
}  # fmt: skip

LAYOUTS = {
    "relative imports over three levels, data beside a module": Folder(
        {
            **_PACKAGE,
            "acme/tools/__init__.py": "",
            "acme/tools/train.py": script_text("""
                import torch
                from .. import Net
                from ..config import (
                    WIDTH,
                )
                print(torch.compile(Net(), backend="eager")(torch.ones(2, WIDTH)).shape)
                """, compiled=False),
        },
        ("-m", "acme.tools.train"),
    ),
    "a script beside a package, started from its tools folder": Folder(
        {
            **_PACKAGE,
            "tools/train.py": script_text("""
                import os, sys
                sys.path.insert(0, os.path.abspath(os.path.join(os.path.dirname(__file__), os.pardir)))
                import torch
                from acme import Net
                print(torch.compile(Net(), backend="eager")(torch.ones(2, 4)).shape)
                """, compiled=False),
        },
        ("train.py",),
        "tools",
    ),
    "conftest two levels up, fixtures in a plugin, a marker": Folder(
        {
            "pytest.ini": "[pytest]\nmarkers =\n    gpu: needs one\npythonpath = src\n",
            "src/model.py": "import torch\ndef step(x):\n    return x.sin() + 1\n",
            "tests/conftest.py": "import pytest\npytest_plugins = []\n@pytest.fixture(params=['eager', 'aot_eager'])\n"
            "def backend(request):\n    return request.param\n",
            "tests/unit/__init__.py": "",
            "tests/__init__.py": "",
            "tests/unit/helpers.py": "SIZE = 3\n",
            "tests/unit/test_step.py": script_text("""
                import pytest, torch
                from model import step
                from .helpers import SIZE
                @pytest.mark.gpu
                def test_skipped():
                    pytest.skip("no")
                @pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
                def test_step(backend, dtype, monkeypatch, capsys):
                    monkeypatch.setenv("ACME", "1")
                    x = torch.ones(SIZE, dtype=dtype)
                    print("here")
                    assert torch.equal(torch.compile(step, backend=backend)(x), step(x))
                    assert "here" in capsys.readouterr().out
                """, compiled=False),
        },
        ("tests/unit/test_step.py::test_step",),
        plain=("-m", "pytest", "tests/unit/test_step.py::test_step"),
    ),
    "a notebook with cell magics and a function over cells": Folder(
        {
            "a notebook.ipynb": notebook_text(
                "%load_ext autoreload\n%autoreload 2\n!pip install -q einops",
                "%%capture out\nimport torch\nprint('hidden')",
                ["import json\n", "width = json.load(open('width.json'))\n", "width"],
                "%%bash\necho hello",
                "def step(x):\n    return x * width\nlines = ['?', '!ls', '%time']",
                "%timeit -n 1 -r 1 1 + 1\ntorch.compile(step, backend='eager')(torch.ones(2))",
            ),
            "width.json": "3",
        },
        ("a notebook.ipynb",),
        plain=("-c", "1"),
    ),
    "argparse with files, choices and a default by the environment": Folder(
        {
            "train.py": script_text("""
                import argparse, os, pathlib
                parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
                parser.add_argument("--config", type=argparse.FileType("r"), required=True)
                parser.add_argument("--out", type=pathlib.Path, default=os.environ.get("ACME_OUT", "results"))
                parser.add_argument("--mode", choices=["a", "b"], default="a")
                parser.add_argument("-v", "--verbose", action="count", default=0)
                args, rest = parser.parse_known_args()
                assert args.config.read() == "width: 3" and rest == ["model.width=4"] and args.verbose == 2
                args.out.mkdir()
                """),
            "configs/a.yaml": "width: 3",
        },
        ("train.py", "--config", "configs/a.yaml", "-vv", "model.width=4"),
    ),
    "a tree of configuration files with overrides, and a folder by date": Folder(
        {
            "train.py": script_text("""
                import datetime, json, os, sys
                from pathlib import Path
                root = Path(__file__).resolve().parent / "conf"
                config = json.loads((root / "config.json").read_text())
                for group, choice in config.pop("defaults").items():
                    config[group] = json.loads((root / group / f"{choice}.json").read_text())
                for override in sys.argv[1:]:
                    key, _, value = override.partition("=")
                    group, _, name = key.partition(".")
                    config[group][name] = json.loads(value)
                assert config["model"]["width"] == 8 and config["optimizer"]["lr"] == 0.5, config
                run = Path("outputs", datetime.datetime.now().strftime("%Y-%m-%d/%H-%M-%S"))
                run.mkdir(parents=True)
                os.chdir(run)
                Path("config.json").write_text(json.dumps(config))
                """),
            "conf/config.json": '{"defaults": {"model": "small", "optimizer": "sgd"}}',
            "conf/model/small.json": '{"width": 2}',
            "conf/optimizer/sgd.json": '{"lr": 0.5}',
        },
        ("train.py", "model.width=8"),
    ),
    "data in a folder beside the parent": Folder(
        {
            "code/exp1/train.py": "rows = list(open('../../data/train/a.txt'))\nassert len(rows) == 2\n" + COMPILED,
            "data/train/a.txt": "1\n2\n",
        },
        where="code/exp1",
    ),
    "symlinked data, one link to a folder": Folder(
        {
            "train.py": script_text("""
                import os
                assert sorted(os.listdir("data")) == ["a.txt", "b.txt"]
                assert open("data/a.txt").read() == "1" and open("latest").read() == "2"
                """),
            "store/v1/a.txt": "1",
            "store/v1/b.txt": "2",
        },
        links={"data": "store/v1", "latest": "store/v1/b.txt"},
    ),
    "Windows line endings": Folder(
        {
            "train.py": ("import helper\nassert helper.TEXT == 'a\\nb'\n" + COMPILED).replace("\n", "\r\n"),
            "helper.py": 'TEXT = """a\r\nb"""\r\n',
        }
    ),
    "a BOM, and another in a module": Folder(
        {"train.py": "\ufeffimport helper\n" + COMPILED, "helper.py": "\ufeffX = 'ü'\n"}
    ),
    "tabs": Folder(
        {
            "train.py": "import torch\n\n@torch.compile(backend='eager')\ndef f(x):\n\tif x.sum() > 0:\n"
            "\t\treturn x + 1\n\treturn x\n\nfor _ in range(2):\n\tprint(f(torch.ones(2)))\n"
        }
    ),
    "Latin-1 by a coding line": Folder({"train.py": "# -*- coding: ascii -*-\nname = 'x'\n" + COMPILED}),
    "a main function and a worker that is spawned": Folder(
        {
            "train.py": script_text("""
                import multiprocessing as mp
                import torch
                def work(rank, queue):
                    queue.put(rank * 2)
                def main():
                    context = mp.get_context("spawn")
                    queue = context.Queue()
                    workers = [context.Process(target=work, args=(rank, queue)) for rank in range(2)]
                    [worker.start() for worker in workers]
                    got = sorted(queue.get(timeout=60) for _ in workers)
                    [worker.join() for worker in workers]
                    assert got == [0, 2], got
                    print(torch.compile(torch.sin, backend="eager")(torch.ones(2)))
                if __name__ == "__main__":
                    main()
                """, compiled=False)
        }
    ),
    "loaders with workers that persist, and a collate function": Folder(
        {
            "train.py": script_text("""
                import torch
                from torch.utils.data import DataLoader, TensorDataset, random_split
                def collate(items):
                    xs, ys = zip(*items)
                    return torch.stack(xs), torch.stack(ys)
                def main():
                    data = TensorDataset(torch.randn(32, 4), torch.randn(32, 1))
                    train, test = random_split(data, [24, 8], generator=torch.Generator().manual_seed(3))
                    options = dict(num_workers=2, persistent_workers=True, collate_fn=collate)
                    loader = DataLoader(train, 8, shuffle=True, **options)
                    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.1), torch.nn.Linear(8, 1))
                    compiled, optimizer = torch.compile(model, backend="eager"), torch.optim.AdamW(model.parameters())
                    for epoch in range(2):
                        for x, y in loader:
                            optimizer.zero_grad()
                            torch.nn.functional.mse_loss(compiled(x), y).backward()
                            optimizer.step()
                if __name__ == "__main__":
                    main()
                """, compiled=False)
        }
    ),
    "a decorator with options of inductor": Folder(
        {
            "train.py": script_text("""
                import torch
                @torch.compile(fullgraph=True, dynamic=False, options={"epilogue_fusion": False, "max_fusion_size": 4})
                def step(x, *, scale: float = 2.0):
                    return torch.nn.functional.gelu(x * scale).sum(dim=-1)
                print(step(torch.linspace(-1, 1, 8).reshape(2, 4), scale=3.0))
                """, compiled=False)
        }
    ),
    "a script that goes into the folder of its data": Folder(
        {
            "run/train.py": script_text("""
                import os
                here = os.getcwd()
                os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data"))
                assert open("a.txt").read() == "1"
                os.chdir(here)
                assert os.path.exists("run/train.py")
                """),
            "data/a.txt": "1",
        },
        ("run/train.py",),
    ),
}  # fmt: skip
