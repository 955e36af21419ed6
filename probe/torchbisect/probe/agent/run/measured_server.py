"""Start measured runs of one script in a moment: each is a fork of this process, which has imported torch.

This file is sent with the two that it imports beside it. It reads a JSON line for each run from standard input, and
answers with a JSON line when the run has ended. What the script itself does, and what it compiles, happens in the fork
alone. The modules of torch that a run imported come back in the answer. The next request has them, and they are
imported before the fork, so that no later run pays for the import of the compiler. Nor does one look for the
instruction sets that work, which takes seconds in each process.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import mmap
import os
import random
import signal
import sys
import traceback
from typing import Any, Dict, List, Set, Tuple

#: The files beside this one; none is part of a package where they run.
measured_run: Any = importlib.import_module("measured_run")
compiler_cache: Any = importlib.import_module("compiler_cache")

#: A run that imported this module has compiled with inductor.
_GENERATES_CPP = "torch._inductor.codegen.cpp"
#: Bytes by which the memory of a fork is moved, at most: a lucky place of the data must not last for all runs.
_MOST_MOVED = 1 << 20


def import_modules(names: List[str]) -> None:
    """Import what an earlier run imported, and leave it out of the garbage collector's work in the forks."""
    new = [name for name in names if name not in sys.modules]
    for name in new:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    if _GENERATES_CPP in new:
        with contextlib.suppress(Exception):
            compiler_cache.install("", "")
    if new or not gc.get_freeze_count():
        gc.collect()
        gc.freeze()


def fork_run(request: Dict[str, Any], kept: Tuple[int, ...]) -> Dict[str, Any]:
    """Run a script in a fork; return its status, and the modules of torch that it imported."""
    before = set(sys.modules)
    process = os.fork()
    if not process:
        for number in kept:
            os.close(number)
        os._exit(_run(request, before))
    with contextlib.suppress(OSError):
        os.setpgid(process, process)
    status = os.waitpid(process, 0)[1]
    with contextlib.suppress(OSError):
        os.killpg(process, signal.SIGKILL)
    modules: List[str] = []
    with contextlib.suppress(OSError), open(request["modules_file"], encoding="utf-8", errors="replace") as names:
        modules = names.read().split()
    ended = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    return {"status": ended, "modules": modules}


def _run(request: Dict[str, Any], before: Set[str]) -> int:
    """Run the script of a request in this process, and return its exit status."""
    try:
        _enter(request)
        moved = _moved_memory()
        measured_run.main(request["plan"], request["script"], request["arguments"])
        del moved
        new = [name for name in list(sys.modules) if name.startswith("torch.") and name not in before]
        with open(request["modules_file"], "w", encoding="utf-8") as names:
            names.write("\n".join(new))
        return 0
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return (end.code or 0) & 255
        sys.stderr.write("{}\n".format(end.code))
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()


def _enter(request: Dict[str, Any]) -> None:
    """Take the streams, the folder and the variables of a run."""
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)
    for number, path in ((1, request["output"]), (2, request["errors"])):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(file, number)
        os.close(file)
    os.chdir(request["folder"])
    place = request["place"]
    if place is None:
        return
    if place["typed_input"]:
        os.dup2(os.open(place["typed_input"], os.O_RDONLY), 0)
    if place["paths"]:
        paths = list(map(os.path.abspath, place["paths"]))
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)
        sys.path[1:1] = paths
    if place["home"] is not None:
        os.environ["HOME"] = os.path.abspath(place["home"])
    os.chdir(place["folder"])


def _moved_memory() -> Tuple[Any, ...]:
    """Take some memory, so that what follows lies elsewhere than in the other forks of this process."""
    chance = random.SystemRandom()
    return bytearray(chance.randrange(1, 1 << 16)), mmap.mmap(-1, chance.randrange(1, _MOST_MOVED))


def main() -> None:
    """Import torch, and answer requests until standard input ends."""
    requests, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    import torch  # noqa: F401

    with open(requests, "rb", buffering=0, closefd=False) as lines:
        for line in lines:
            request = json.loads(line)
            import_modules(request["modules"])
            answer = fork_run(request, (requests, answers))
            os.write(answers, json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    main()
