"""More folders as users have them, by what their scripts do: checkpoints, logs, threads, files that are made."""

from __future__ import annotations

import json

from user_folders import COMPILED, Folder, script_text

ACTIVITIES = {
    "checkpoints that are written, listed and read again": Folder(
        {
            "train.py": script_text("""
                import glob, os, shutil
                import torch
                os.makedirs("checkpoints", exist_ok=True)
                model = torch.nn.Linear(2, 2)
                for epoch in range(3):
                    torch.save({"model": model.state_dict(), "epoch": epoch}, f"checkpoints/epoch{epoch}.pt.tmp")
                    os.replace(f"checkpoints/epoch{epoch}.pt.tmp", f"checkpoints/epoch{epoch}.pt")
                last = max(glob.glob("checkpoints/*.pt"), key=lambda path: int(path[-4]))
                state = torch.load(last, weights_only=True)
                assert state["epoch"] == 2
                model.load_state_dict(state["model"])
                shutil.copy(last, "best.pt")
                print(torch.compile(model, backend="eager")(torch.ones(1, 2)).shape)
                """, compiled=False)
        }
    ),
    "a script that goes on from the checkpoint of an earlier run": Folder(
        {
            "train.py": script_text("""
                import json, os
                state = json.load(open("state.json")) if os.path.exists("state.json") else {"step": 0}
                assert state["step"] == 5, state
                state["step"] += 1
                json.dump(state, open("state.json", "w"))
                """),
            "state.json": '{"step": 5}',
        }
    ),
    "a script that prints a lot": Folder(
        {"train.py": "for i in range(60000):\n    print('line', i, 'x' * 40)\n" + COMPILED}
    ),
    "progress by carriage returns on standard error": Folder(
        {
            "train.py": "import sys, time\nfor i in range(300):\n    sys.stderr.write(f'\\r{i}/300 {time.time()}')\n"
            "    sys.stderr.flush()\n" + COMPILED
        }
    ),
    "logging to a rotating file and by a configuration": Folder(
        {
            "train.py": script_text("""
                import logging, logging.config, logging.handlers, json
                logging.config.dictConfig(json.load(open("logging.json")))
                log = logging.getLogger("acme.train")
                for i in range(100):
                    log.info("step %d", i)
                assert "step 99" in open("train.log").read()
                """),
            "logging.json": json.dumps({
                "version": 1,
                "formatters": {"plain": {"format": "%(asctime)s %(name)s %(message)s"}},
                "handlers": {
                    "file": {"class": "logging.handlers.RotatingFileHandler", "filename": "train.log",
                             "maxBytes": 2000, "backupCount": 2, "formatter": "plain"},
                    "console": {"class": "logging.StreamHandler", "formatter": "plain"},
                },
                "root": {"level": "INFO", "handlers": ["file", "console"]},
            }),
        }
    ),
    "a sibling by a change of sys.path, named at run time": Folder(
        {
            "exp/train.py": script_text("""
                import sys, os
                ROOT = os.sep.join(os.path.abspath(__file__).split(os.sep)[:-2])
                sys.path.append(ROOT + "/lib")
                import importlib
                net = importlib.import_module("net" + "work")
                assert net.WIDTH == 3
                """),
            "lib/network.py": "WIDTH = 3\n",
        },
        ("exp/train.py",),
    ),
    "a namespace package without __init__": Folder(
        {
            "train.py": "from lib.models.net import Net\nimport lib.util as util\nassert util.ONE == 1\n" + COMPILED,
            "lib/models/net.py": "import torch\nfrom lib.util import ONE\nclass Net(torch.nn.Module):\n    pass\n",
            "lib/util.py": "ONE = 1\n",
        }
    ),
    "an extra file that is a pickle of a class of the script": Folder(
        {
            "train.py": script_text("""
                import io, pickle
                from dataclasses import dataclass
                @dataclass
                class State:
                    step: int
                blob = pickle.dumps(State(3))
                open("state.pkl", "wb").write(blob)
                with open("state.pkl", "rb") as file:
                    assert pickle.load(file) == State(3)
                """)
        }
    ),
    "a database, a csv and a zip": Folder(
        {
            "train.py": script_text("""
                import csv, sqlite3, zipfile
                rows = list(csv.DictReader(open("data/a.csv", newline="")))
                with sqlite3.connect("runs.db") as db:
                    db.execute("create table if not exists run (x real)")
                    db.executemany("insert into run values (?)", [(float(row["x"]),) for row in rows])
                    assert db.execute("select sum(x) from run").fetchone() == (3.0,)
                with zipfile.ZipFile("a.zip", "w") as z:
                    z.write("data/a.csv")
                assert zipfile.ZipFile("a.zip").namelist() == ["data/a.csv"]
                """),
            "data/a.csv": "x,y\n1,2\n2,3\n",
        }
    ),
    "numpy, a memory map and a global seed": Folder(
        {
            "train.py": script_text("""
                import random
                import numpy as np
                import torch
                random.seed(1); np.random.seed(1); torch.manual_seed(1)
                array = np.memmap("a.bin", dtype="float32", mode="w+", shape=(4,))
                array[:] = np.random.rand(4)
                array.flush()
                x = torch.from_numpy(np.fromfile("a.bin", dtype="float32"))
                step = torch.compile(lambda x: x * torch.rand_like(x), backend="eager")
                print(step(x), random.random(), np.random.rand())
                """, compiled=False)
        }
    ),
    "asynchronous code, a thread pool and a lock": Folder(
        {
            "train.py": script_text("""
                import asyncio, concurrent.futures as cf, threading
                import torch
                lock, step = threading.Lock(), torch.compile(lambda x: x + 1, backend="eager")
                def work(i):
                    with lock:
                        return step(torch.full((2,), float(i))).sum().item()
                async def main():
                    loop = asyncio.get_running_loop()
                    with cf.ThreadPoolExecutor(2) as pool:
                        return await asyncio.gather(*(loop.run_in_executor(pool, work, i) for i in range(4)))
                assert asyncio.run(main()) == [2.0, 4.0, 6.0, 8.0]
                """, compiled=False)
        }
    ),
    "a status of its own, atexit and a finally": Folder(
        {
            "train.py": script_text("""
                import atexit, os, sys, tempfile, torch
                folder = tempfile.mkdtemp(prefix="acme")
                atexit.register(lambda: print("bye", len(os.listdir(folder))))
                try:
                    with tempfile.NamedTemporaryFile("w", dir=folder, delete=False) as file:
                        file.write("x")
                    path = file.name
                    print(torch.compile(torch.cos, backend="eager")(torch.ones(3)))
                finally:
                    os.unlink(path)
                sys.exit()
                """, compiled=False)
        }
    ),
    "a class that is compiled by a method, with a hook and state": Folder(
        {
            "train.py": script_text("""
                import functools
                import torch
                from torch import nn
                class Trainer:
                    def __init__(self, model: nn.Module, compile_model: bool = True, **options):
                        self.model, self.history = model, []
                        if compile_model:
                            self.model.compile(**options)
                        self.model.register_forward_hook(lambda module, args, out: self.history.append(out.shape))
                    @functools.cached_property
                    def optimizer(self):
                        return torch.optim.SGD(self.model.parameters(), lr=0.1)
                    def fit(self, steps):
                        for _ in range(steps):
                            loss = self.model(torch.ones(2, 3)).pow(2).mean()
                            self.optimizer.zero_grad(); loss.backward(); self.optimizer.step()
                        return loss.item()
                trainer = Trainer(nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)), backend="aot_eager")
                print(trainer.fit(3), trainer.history)
                """, compiled=False)
        }
    ),
    "a script without a suffix, with a first line for the shell": Folder(
        {"bin/train": "#!/usr/bin/env python3\n" + COMPILED}, ("bin/train",)
    ),
    "a name with spaces and an accent": Folder(
        {"mon modèle (v2).py": "print(__file__)\nassert open('données.txt').read() == 'é'\n" + COMPILED,
         "données.txt": "é"},
        ("mon modèle (v2).py",),
    ),
    "data and a setting by environment variables": Folder(
        {
            "train.py": script_text("""
                import os
                from pathlib import Path
                ROOT = Path(os.getenv("ACME_DATA", "/nowhere"))
                WIDTH = int(os.environ["ACME_WIDTH"])
                assert (ROOT / "a.txt").read_text() == "1" and WIDTH == 3
                assert "ACME_UNSET" not in os.environ
                """),
            "data/a.txt": "1",
        },
        shell={"ACME_DATA": "data", "ACME_WIDTH": "3"},
    ),
    "a script that reads its own text and its module's": Folder(
        {
            "train.py": script_text("""
                import inspect, pathlib
                import helper
                assert "inspect" in pathlib.Path(__file__).read_text()
                assert "def one" in inspect.getsource(helper.one)
                """),
            "helper.py": "def one():\n    return 1\n",
        }
    ),
    "a data set of files by class, with a cache that is made": Folder(
        {
            "train.py": script_text("""
                import hashlib, json, os, torch
                from pathlib import Path
                class Files(torch.utils.data.Dataset):
                    def __init__(self, root, cache=Path(".cache")):
                        cache.mkdir(exist_ok=True)
                        key = cache / (hashlib.md5(str(root).encode()).hexdigest() + ".json")
                        if not key.exists():
                            key.write_text(json.dumps(sorted(map(str, Path(root).rglob("*.txt")))))
                        self.paths = json.loads(key.read_text())
                        self.classes = sorted({os.path.basename(os.path.dirname(p)) for p in self.paths})
                    def __len__(self):
                        return len(self.paths)
                    def __getitem__(self, i):
                        path = Path(self.paths[i])
                        return torch.tensor(float(open(path).read())), self.classes.index(path.parent.name)
                data = Files("data")
                assert len(data) == 3 and data.classes == ["cat", "dog"]
                for x, y in torch.utils.data.DataLoader(data, batch_size=3):
                    print(torch.compile(lambda x: x * 2, backend="eager")(x), y)
                """, compiled=False),
            "data/cat/1.txt": "1",
            "data/cat/2.txt": "2",
            "data/dog/1.txt": "3",
        }
    ),
    "an ImportError that is caught, and warnings as errors": Folder(
        {
            "train.py": script_text("""
                import warnings
                try:
                    import wandb_that_is_not_there as wandb
                except ImportError:
                    wandb = None
                warnings.simplefilter("once")
                warnings.warn("mine")
                if wandb is not None:
                    wandb.init()
                """)
        }
    ),
}  # fmt: skip
