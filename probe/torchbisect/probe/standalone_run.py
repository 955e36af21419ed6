"""Run a script under plain ``python``: no agent and no torchbisect, only the environment's interpreter.

A shrunk script must fail here before a report says that it stands alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from torchbisect.containers.environment import Environment
from torchbisect.containers.process.run_command import Completed
from torchbisect.containers.store.run_folder import temporary_folder
from torchbisect.core.errors import DiskFull
from torchbisect.core.repro import Files, Settings
from torchbisect.probe.agent.run import compiler_cache

_LAST_LINES = 12
_LONGEST_LINE = 2000
_AS_WRITTEN = Settings()


@dataclass(frozen=True)
class PlainRun:
    """The ending of a script under plain ``python``.

    Attributes:
        status: the exit status; the negative number of the signal that ended it; ``None`` if its time ran out.
        output: what it wrote to standard output, then to standard error, capped by the environment.
        last_words: the last informative line: the exception, where there is a traceback.
    """

    status: int | None
    output: str
    last_words: str
    seconds: float

    @property
    def failed(self) -> bool:
        """True unless it ended with status 0."""
        return self.status != 0


def run_plain(
    environment: Environment,
    source: str,
    arguments: Sequence[str] = (),
    *,
    timeout: float = 300.0,
    name: str = "minimal.py",
    settings: Settings | None = _AS_WRITTEN,
    cancel: threading.Event | None = None,
    files: Files | None = None,
) -> PlainRun:
    """Run a script with the environment's ``python`` in an empty folder of its own, with compiler caches of its own.

    Args:
        files: the files that lie beside it; by default there are none.
        timeout: seconds until it is ended.
        settings: those of ``torch.compile``; ``None`` switches it off through torch's own ``TORCHDYNAMO_DISABLE``.
        cancel: ends it early, with ``Cancelled``.

    Raises ``DiskFull`` if there is no room for the folder or for what the script writes.
    """
    with placed_script(environment, source, name, files) as (folder, words, extra):
        if settings is None:
            extra["TORCHDYNAMO_DISABLE"] = "1"
        elif settings != Settings():
            words[-1:] = ["-c", _FORCED.format(settings=settings.to_json()), words[-1]]
        done = environment.run([*words, *arguments], timeout=timeout, directory=folder, extra=extra, cancel=cancel)
    text = done.output + ("\n" if done.output and not done.output.endswith("\n") else "") + done.errors
    check_disk(done)
    return PlainRun(done.status, text, last_words(text), done.seconds)


@contextlib.contextmanager
def placed_script(
    environment: Environment, source: str, name: str, files: Files | None, *, what: str = "script"
) -> Iterator[tuple[str, list[str], dict[str, str]]]:
    """Give an empty folder with a script and its files, the words that run it, and the variables of its compiler.

    Raises ``DiskFull`` if there is no room; ``what`` names there what can't be written.
    """
    with temporary_folder("plain") as folder:
        try:
            extra = compiler_folders(environment, folder)
            words = place_script(Path(folder), source, name, files)
        except OSError as error:
            raise DiskFull(f"{folder}: {error.strerror}: the {what} can't be written there") from error
        yield folder, words, extra


def place_script(folder: Path, source: str, name: str, files: Files | None) -> list[str]:
    """Write a script, and beside it the files that it needs; return the words that run it from this folder."""
    if files is None or not files.folder:
        (folder / name).write_text(source, encoding="utf-8", errors="surrogatepass")
        return [name]
    root = folder / "files"  # the compiler's folders are no part of them
    shutil.copytree(files.folder, root, symlinks=True)
    for place in (files.script, files.cwd):
        (root / place).mkdir(parents=True, exist_ok=True)
    path, cwd = root / files.script / name, root / files.cwd
    path.unlink(missing_ok=True)
    path.write_text(source, encoding="utf-8", errors="surrogatepass")
    typed_input = ""
    if files.typed_input:  # beside the folder, where the script does not find it
        typed_input = "standard-input"
        os.replace(root / files.typed_input, folder / typed_input)
    if files.home is not None:
        (root / files.home).mkdir(parents=True, exist_ok=True)
    plan = {
        "typed_input": typed_input,
        "paths": [os.path.relpath(root / part, folder) for part in files.paths],
        "home": None if files.home is None else os.path.relpath(root / files.home, folder),
        "variables": dict(files.variables),
        "folder": os.path.relpath(cwd, folder),
    }
    return ["-c", _FROM_FOLDER, json.dumps(plan), os.path.relpath(path, cwd)]


# Starts a script in another folder, with its standard input, its variables and its folders of modules.
_FROM_FOLDER = """\
import json, os, sys
plan, words = json.loads(sys.argv[1]), sys.argv[2:]
if plan["typed_input"]:
    os.dup2(os.open(plan["typed_input"], os.O_RDONLY), 0)
os.environ.update(plan["variables"])
if plan["paths"]:
    os.environ["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, plan["paths"]))
if plan["home"] is not None:
    os.environ["HOME"] = os.path.abspath(plan["home"])
os.chdir(plan["folder"])
os.execv(sys.executable, [sys.executable, *words])
"""

# Runs a script with settings that override those of its ``torch.compile``.
_FORCED = """\
import importlib, os, runpy, sys, torch
settings, real = {settings!r}, torch.compile
def compile(model=None, **options):
    if model is None:
        return lambda model: compile(model, **options)
    forced = {{name: settings[name] for name in ("backend", "mode", "dynamic") if settings[name] is not None}}
    if settings["backend"] not in (None, "inductor"):
        options.pop("mode", None), options.pop("options", None)
    if settings["mode"] is not None:
        options.pop("options", None)
    return real(model, **{{**options, **forced}})
torch.compile = compile
for name, value in settings["knobs"]:
    owner, _, flag = name.rpartition(".")
    setattr(importlib.import_module("torch." + owner), flag, value)
if settings["compiled_autograd"] is not None:
    importlib.import_module("torch._dynamo.config").compiled_autograd = settings["compiled_autograd"]
sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@contextlib.contextmanager
def plain_runs_side_by_side(
    environment: Environment,
    source: str,
    switched_off: Sequence[bool],
    *,
    timeout: float,
    files: Files | None = None,
) -> Iterator[Iterator[PlainRun]]:
    """Run a script several times at once under plain ``python``; as a context manager it gives the runs in order.

    ``switched_off`` says for each run if ``torch.compile`` is switched off. At the end, runs that go on are ended.
    """
    cancel = threading.Event()
    pool = ThreadPoolExecutor(len(switched_off), thread_name_prefix="plain")
    try:
        run = partial(run_plain, environment, source, timeout=timeout, cancel=cancel, files=files)
        runs = [pool.submit(run, settings=None if off else Settings()) for off in switched_off]
        yield (future.result() for future in runs)
    finally:
        cancel.set()
        pool.shutdown(cancel_futures=True)


def compiler_folders(environment: Environment, folder: str) -> dict[str, str]:
    """Return the variables that place the compiler's caches in a folder, which gets what is known about the machine.

    That is the instruction sets that work and precompiled headers (``agent/run/compiler_cache.py``): nothing that a
    script made, and nothing that torch would not find itself. Torch looks for headers in the temporary folder, under
    the name of the user.
    """
    headers = Path(folder, "tmp", "torchinductor_torchbisect", "precompiled_headers")
    inductor = Path(folder, "inductor")
    headers.parent.mkdir(parents=True)
    known: dict[str, str] = {}
    if environment.compiler_cache is not None:
        known = compiler_cache.variables(environment.compiler_cache)
        for name, place in ((compiler_cache.INSTRUCTION_SETS, inductor), (compiler_cache.HEADERS, headers)):
            with contextlib.suppress(FileNotFoundError):
                shutil.copytree(Path(environment.compiler_cache, name), place)
    return {
        **known,
        "TMPDIR": str(headers.parents[1]),
        "TORCHINDUCTOR_CACHE_DIR": str(inductor),
        "TRITON_CACHE_DIR": os.path.join(folder, "triton"),
    }


# What torch prints below an exception is advice; the exception stands above it.
_ADVICE = (
    "Set TORCHDYNAMO_VERBOSE",
    "Set TORCH_LOGS",
    "You can suppress",
    "import torch._dynamo",
    "torch._dynamo.config",
)


def check_disk(done: Completed) -> None:
    """Raise ``DiskFull`` if what was run says that there was no room left on the disk."""
    if "No space left on device" in done.errors:
        raise DiskFull("no space left on the disk: free some, then give the same command again")


def last_words(text: str) -> str:
    """Return the last informative line of a script's output: the exception of a traceback; empty if there is none."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    for position, line in reversed(list(enumerate(lines))):
        if line == "from user code:" and position:
            return _exception_above(lines, position)
    kept = [line for line in lines if not line.strip().startswith(_ADVICE)]
    return kept[-1].strip()[:_LONGEST_LINE] if kept else ""


def _exception_above(lines: list[str], position: int) -> str:
    """Return the line that names the exception, above the lines that quote the script."""
    for line in reversed(lines[max(0, position - _LAST_LINES) : position]):
        name = line.split(":", 1)[0]
        if line and not line[0].isspace() and name.replace(".", "").replace("_", "").isalnum():
            return line[:_LONGEST_LINE]
    return lines[position - 1].strip()[:_LONGEST_LINE]
