"""Folders in forms that are rarer: distributed and library code, other ways to compile, odd ends."""

from __future__ import annotations

from user_folders import COMPILED, Folder, script_text

RARER = {
    "other ways to compile": Folder(
        {
            "train.py": script_text("""
                import functools
                import torch
                from torch import compile as fast
                import torch._dynamo as dynamo
                step = dynamo.optimize("eager")(lambda x: x + 1)
                class Model(torch.nn.Module):
                    @functools.partial(torch.compile, backend="eager", fullgraph=True)
                    def forward(self, x):
                        return x.cos()
                print(step(torch.ones(2)), Model()(torch.ones(2)), fast(torch.sin, backend="eager")(torch.ones(1)))
                torch._dynamo.reset()
                """, compiled=False)
        }
    ),
    "a process group of one process": Folder(
        {
            "train.py": script_text("""
                import os, socket
                import torch, torch.distributed as dist
                with socket.socket() as s:
                    s.bind(("127.0.0.1", 0))
                    port = s.getsockname()[1]
                os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK="0", WORLD_SIZE="1")
                dist.init_process_group("gloo")
                net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
                torch.compile(net, backend="eager")(torch.ones(1, 2)).sum().backward()
                dist.destroy_process_group()
                """, compiled=False)
        }
    ),
    "workers that torch spawns": Folder(
        {
            "train.py": script_text("""
                import torch
                import torch.multiprocessing as mp
                def work(rank, path):
                    open(f"{path}.{rank}", "w").write(str(rank))
                if __name__ == "__main__":
                    mp.spawn(work, args=("out",), nprocs=2)
                    assert open("out.1").read() == "1"
                    print(torch.compile(torch.sin, backend="eager")(torch.ones(2)))
                """, compiled=False)
        }
    ),
    "custom operators and an autograd function": Folder(
        {
            "train.py": script_text("""
                import torch
                @torch.library.custom_op("acme::twice", mutates_args=())
                def twice(x: torch.Tensor) -> torch.Tensor:
                    return x * 2
                @twice.register_fake
                def _(x):
                    return torch.empty_like(x)
                class Square(torch.autograd.Function):
                    @staticmethod
                    def forward(ctx, x):
                        ctx.save_for_backward(x)
                        return x * x
                    @staticmethod
                    def backward(ctx, grad):
                        (x,) = ctx.saved_tensors
                        return 2 * x * grad
                x = torch.ones(3, requires_grad=True)
                torch.compile(lambda x: Square.apply(twice(x.detach()) + x), backend="aot_eager")(x).sum().backward()
                print(x.grad)
                """, compiled=False)
        }
    ),
    "output that goes to a file and is read again": Folder(
        {
            "train.py": script_text("""
                import contextlib, io, logging, sys
                logging.basicConfig(stream=sys.stdout, level=logging.DEBUG, format="%(asctime)s %(message)s")
                class Tee:
                    def __init__(self, *files): self.files = files
                    def write(self, text): [file.write(text) for file in self.files]
                    def flush(self): [file.flush() for file in self.files]
                log = open("train.log", "w")
                sys.stdout = Tee(sys.stdout, log)
                print("started")
                log.flush()
                assert open("train.log").read() == "started\\n"
                with contextlib.redirect_stdout(io.StringIO()) as text:
                    print("inside")
                assert text.getvalue() == "inside\\n"
                """)
        }
    ),
    "other scripts by exec and runpy, and python by its name": Folder(
        {
            "train.py": script_text("""
                import runpy, subprocess
                exec(open("defaults.py").read())
                assert runpy.run_path("more.py")["Y"] == WIDTH + 1
                assert subprocess.run("python -c 'print(1)' | cat", shell=True, capture_output=True).stdout == b"1\\n"
                """),
            "defaults.py": "WIDTH = 3\n",
            "more.py": "Y = 4\n",
        }
    ),
    "an alarm, a deep recursion and a signal's handler": Folder(
        {
            "train.py": script_text("""
                import signal, sys, threading, time
                sys.setrecursionlimit(5000)
                threading.stack_size(64 << 20)
                def deep(n): return 0 if n == 0 else 1 + deep(n - 1)
                assert deep(2000) == 2000
                got = []
                signal.signal(signal.SIGALRM, lambda *_: got.append(1))
                signal.setitimer(signal.ITIMER_REAL, 0.1)
                time.sleep(0.5)
                assert got == [1]
                signal.signal(signal.SIGINT, signal.SIG_DFL)
                """)
        }
    ),
    "names and times that no seed decides": Folder(
        {
            "train.py": script_text("""
                import os, time, uuid
                import torch
                began = time.time()
                run = f"run-{uuid.uuid4().hex[:8]}-{int(began * 1000)}"
                model = torch.compile(lambda x: x.sum(), backend="eager")
                print(len(run), model(torch.ones(3)), object())
                elapsed, process = time.time() - began, os.getpid()
                """, compiled=False)
        }
    ),
    "an end by os._exit": Folder({"train.py": COMPILED + "import os, sys\nsys.stdout.flush()\nos._exit(0)\n"}),
    "tests of unittest by pytest's name": Folder(
        {
            "tests/test_step.py": script_text("""
                import unittest, torch
                class StepTest(unittest.TestCase):
                    @classmethod
                    def setUpClass(cls):
                        cls.x = torch.ones(2)
                    def test_sin(self):
                        for scale in (1, 2):
                            with self.subTest(scale=scale):
                                step = torch.compile(lambda x: x.sin() * scale, backend="eager")
                                torch.testing.assert_close(step(self.x), self.x.sin() * scale)
                """, compiled=False)
        },
        ("tests/test_step.py::StepTest::test_sin",),
        plain=("-m", "pytest", "tests/test_step.py::StepTest::test_sin"),
    ),
    "a project's own options of pytest": Folder(
        {
            "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '-n 2 --strict-markers'\npythonpath = ['src']\n",
            "src/steps.py": "def step(x):\n    return x.sin()\n",
            "tests/test_step.py": "import torch\nfrom steps import step\ndef test_step():\n"
            "    torch.compile(step, backend='eager')(torch.ones(2))\n",
        },
        ("tests/test_step.py::test_step",),
        plain=("-m", "pytest", "tests/test_step.py::test_step"),
    ),
    "options of a plugin of pytest that is not there": Folder(
        {
            "pytest.ini": "[pytest]\naddopts = --acme-option\n",
            "test_step.py": "import torch\ndef test_step():\n"
            "    torch.compile(torch.sin, backend='eager')(torch.ones(2))\n",
        },
        ("test_step.py::test_step",),
        plain=("-m", "pytest", "-o", "addopts=", "test_step.py::test_step"),
    ),
    "a device by what is there, and mixed precision": Folder(
        {
            "train.py": script_text("""
                import torch
                device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
                scaler = torch.amp.GradScaler(device, enabled=device == "cuda")
                model = torch.nn.Linear(4, 4).to(device)
                opt = torch.optim.Adam(model.parameters(), lr=torch.tensor(0.01))
                step = torch.compile(model, backend="aot_eager")
                for _ in range(2):
                    with torch.autocast(device, dtype=torch.bfloat16):
                        loss = step(torch.ones(2, 4, device=device)).square().mean()
                    scaler.scale(loss.float()).backward()
                    scaler.step(opt); scaler.update(); opt.zero_grad(set_to_none=True)
                print(loss.item())
                """, compiled=False)
        }
    ),
    "a checkpoint beside the script, in the formats of torch and numpy": Folder(
        {
            "make.py": "X = 1\n",
            "train.py": script_text("""
                import numpy as np, torch, json, pickle, gzip
                torch.save({"w": torch.eye(2)}, "w.pt")
                np.savez("a.npz", x=np.ones(2))
                pickle.dump([1], gzip.open("p.gz", "wb"))
                w = torch.load("w.pt", map_location="cpu", mmap=True)["w"]
                x = torch.tensor(np.load("a.npz")["x"], dtype=torch.float32)
                assert pickle.load(gzip.open("p.gz")) == [1]
                print(torch.compile(lambda w, x: w @ x, backend="eager")(w, x))
                """, compiled=False),
        }
    ),
    "a server of its own on this machine": Folder(
        {
            "train.py": script_text("""
                import http.server, json, threading, urllib.request
                class Handler(http.server.BaseHTTPRequestHandler):
                    def do_GET(self):
                        self.send_response(200); self.end_headers(); self.wfile.write(b'{"x": 2}')
                    def log_message(self, *args): pass
                server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
                threading.Thread(target=server.serve_forever, daemon=True).start()
                url = f"http://127.0.0.1:{server.server_port}/"
                assert json.load(urllib.request.urlopen(url)) == {"x": 2}
                """)
        }
    ),
    "a graph, code generation and a profile": Folder(
        {
            "train.py": script_text("""
                import torch, linecache, types
                from torch.profiler import profile, ProfilerActivity
                source = "def step(x):\\n    return x.sin() + 1\\n"
                module = types.ModuleType("made")
                exec(compile(source, "<made>", "exec"), module.__dict__)
                with profile(activities=[ProfilerActivity.CPU]) as prof:
                    torch.compile(module.step, backend="eager")(torch.ones(2))
                prof.export_chrome_trace("trace.json")
                traced = torch.fx.symbolic_trace(module.step)
                print(torch.compile(traced, backend="eager")(torch.ones(2)), len(open("trace.json").read()) > 100)
                """, compiled=False)
        }
    ),
    "type hints, a protocol, a match statement and walrus": Folder(
        {
            "train.py": script_text("""
                from __future__ import annotations
                import enum, dataclasses, typing as t
                import torch
                from torch import Tensor
                class Kind(enum.Enum):
                    A = "a"
                class Step(t.Protocol):
                    def __call__(self, x: Tensor, /) -> Tensor: ...
                @dataclasses.dataclass(frozen=True, slots=True)
                class Config:
                    kind: Kind = Kind.A
                def make(config: Config) -> Step:
                    match config:
                        case Config(kind=Kind.A):
                            return torch.compile(lambda x: x + 1, backend="eager")
                        case _:
                            raise ValueError(config)
                if (y := make(Config())(torch.ones(2))).sum() > 3:
                    print(f"{y = }")
                """, compiled=False)
        }
    ),
    "modules with names of Python's own": Folder(
        {
            "train.py": "import calendar, sched\nassert calendar.X == sched.X == 5\n" + COMPILED,
            "calendar.py": "X = 5\n",
            "sched/__init__.py": "X = 5\n",
        }
    ),
    "a folder with __main__": Folder(
        {
            "app/__main__.py": "import sys\nfrom util import ONE\nassert sys.argv[1:] == ['-v']\n" + COMPILED,
            "app/util.py": "ONE = 1\n",
        },
        ("app", "-v"),
    ),
}  # fmt: skip
