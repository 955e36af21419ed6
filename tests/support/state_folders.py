"""Scripts that change what belongs to the whole process: threads, streams, warnings, defaults of torch."""

from __future__ import annotations

from user_folders import COMPILED, Folder

_BEFORE = {
    "interop threads": "import torch\ntorch.set_num_interop_threads(1)\ntorch.set_num_threads(1)\n",
    "a start method": "import torch.multiprocessing as mp\nmp.set_start_method('spawn')\n",
    "warnings are errors": "import warnings\nwarnings.simplefilter('error')\nimport torch\n",
    "no gradients, deterministic, another dtype": "import torch\ntorch.set_grad_enabled(False)\n"
    "torch.use_deterministic_algorithms(True)\ntorch.set_default_dtype(torch.float64)\n",
    "inference mode to the end": "import torch\nmode = torch.inference_mode()\nmode.__enter__()\n",
    "anomaly detection, printing, traces": "import torch, faulthandler, tracemalloc, gc\nfaulthandler.enable()\n"
    "tracemalloc.start()\ngc.disable()\ntorch.autograd.set_detect_anomaly(True)\ntorch.set_printoptions(precision=2)\n",
    "print is another function": "import builtins, functools\nbuiltins.print = functools.partial(print, flush=True)\n",
    "no variables": "import os\nos.environ.clear()\n",
    "streams by their numbers": "import os, sys\nsys.stdout.reconfigure(line_buffering=True, encoding='utf-8')\n"
    "sys.stdout.buffer.write(b'a\\n')\nsys.stdout.flush()\nsaved = os.dup(1)\n"
    "log = os.open('log.txt', os.O_WRONLY | os.O_CREAT)\nos.dup2(log, 1)\nprint('in the log')\nsys.stdout.flush()\n"
    "os.dup2(saved, 1)\nassert open('log.txt').read() == 'in the log\\n'\nassert not sys.stdout.isatty()\n",
    "hooks for exceptions": "import sys, threading\nsys.excepthook = lambda *args: None\nthreading.excepthook = print\n"
    "thread = threading.Thread(target=lambda: 1 / 0)\nthread.start()\nthread.join()\n",
    "a trace function and a profile": "import sys, cProfile\nprofile = cProfile.Profile()\nprofile.enable()\n"
    "sum(range(10))\nprofile.disable()\nsys.settrace(lambda *args: None)\nsys.settrace(None)\n",
    "a child of its own": "import os\npid = os.fork()\nif pid == 0:\n    os._exit(3)\n"
    "assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3\n",
    "torch functions replaced": "import torch\nsin = torch.sin\ncalls = []\n"
    "torch.relu = lambda x: calls.append(1) or x.clamp(min=0)\ntorch.relu(torch.ones(1))\nassert calls == [1]\n",
    "names of builtins": "import torch\nlist, id, type, compile = [1], 2, 'x', torch.compile\n"
    "input, open = torch.ones(1), 3\n",
    "generators and seeds of its own": "import torch\ng = torch.Generator().manual_seed(3)\n"
    "x = torch.randn(2, generator=g)\n"
    "state = torch.get_rng_state()\nwith torch.random.fork_rng():\n    torch.manual_seed(1)\n    torch.rand(1)\n"
    "assert torch.equal(torch.get_rng_state(), state)\n",
    "a global lock, a context variable and a weak reference": "import threading, contextvars, weakref, torch\n"
    "lock, var = threading.RLock(), contextvars.ContextVar('v', default=1)\nclass Node:\n    pass\nnode = Node()\n"
    "ref = weakref.ref(node)\nassert ref() is node and var.get() == 1\n",
}  # fmt: skip
_AFTER = {
    "standard output is closed": "import sys\nsys.stdout.close()\n",
    "a thread that outlives the script": "import threading, time\n"
    "threading.Thread(target=time.sleep, args=(0.5,)).start()\n",
    "an exit in a thread, and one with None": "import sys, threading\n"
    "threading.Thread(target=sys.exit).start()\nsys.exit(None)\n",
}  # fmt: skip

STATE = {
    **{name: Folder({"train.py": text + COMPILED}) for name, text in _BEFORE.items()},
    **{name: Folder({"train.py": COMPILED + text}) for name, text in _AFTER.items()},
}
