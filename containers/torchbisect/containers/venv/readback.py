"""Facts of an environment, read back from its own Python after the install."""

from __future__ import annotations

import dataclasses
import json
import signal
from collections.abc import Callable
from pathlib import Path

from packaging.version import InvalidVersion, Version

from torchbisect.containers.environment import Completed, Facts
from torchbisect.core.build import Build, Channel
from torchbisect.core.errors import InstallFailed

#: Seconds for an import of torch; a cold one from a slow disk takes tens of them.
IMPORT_TIMEOUT = 300.0

_MARK = "torchbisect-facts:"

#: Script for Python 3.8 and torch 2.0 up that prints an environment's facts. With ``warm`` it also imports the compile
#: stack, so that its byte code is written during the install and not during the first run.
FACTS_QUERY = r"""
import json, platform, sys
import torch
from importlib import metadata
for name in ("torch._dynamo", "torch._inductor.compile_fx") if "warm" in sys.argv else ():
    try:
        __import__(name)
    except Exception:
        pass
triton = None
for name in ("triton", "pytorch-triton"):
    try:
        triton = metadata.version(name)
        break
    except metadata.PackageNotFoundError:
        pass
version = getattr(torch, "version", None)
print("torchbisect-facts:" + json.dumps({
    "torch": str(torch.__version__),
    "git_version": getattr(version, "git_version", None),
    "python": platform.python_version(),
    "platform": platform.platform(),
    "cuda": getattr(version, "cuda", None),
    "triton": triton,
}))
"""


def read_facts(run: Callable[..., Completed], build: Build, *, warm: bool = False) -> Facts:
    """Import torch in an environment and return its facts.

    Args:
        run: the environment's ``run``.
        build: the build that should be there.
        warm: import the compile stack too, so that its byte code is written.

    Raises:
        InstallFailed: ``import-failed`` if torch can't be imported, ``other-version`` if it is another version.
    """
    done = run(["-c", FACTS_QUERY, *(["warm"] if warm else [])], timeout=IMPORT_TIMEOUT)
    answers = [line for line in done.output.splitlines() if line.startswith(_MARK)]
    if done.status != 0 or not answers:
        raise InstallFailed("import-failed", f"torch {build} was installed but can't be imported ({_why(done)})")
    facts = parse_facts(answers[-1][len(_MARK) :])
    # The version that a commit's torch reports is not known before it is built.
    if build.channel is not Channel.COMMIT and not same_version(build.version, facts.torch):
        raise InstallFailed("other-version", f"torch {build.version} was asked for and {facts.torch} came")
    return facts


def parse_facts(text: str) -> Facts:
    """Parse facts from JSON; unknown entries are ignored, missing ones are ``None``. Raise ``ValueError``."""
    data = json.loads(text)
    if not isinstance(data, dict) or not all(
        isinstance(data.get(name), str) for name in ("torch", "python", "platform")
    ):
        raise ValueError("these aren't the facts of an environment")
    names = {field.name for field in dataclasses.fields(Facts)}
    return Facts(**{"git_version": None, **{name: value for name, value in data.items() if name in names}})


def load_facts(path: Path) -> Facts | None:
    """Read facts from a file, or return ``None`` if they can't be read."""
    try:
        return parse_facts(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError):
        return None


def dump_facts(facts: Facts) -> str:
    """Return facts as JSON."""
    return json.dumps(dataclasses.asdict(facts), indent=1)


def same_version(asked: str, got: str) -> bool:
    """Return true if ``got`` is the version ``asked``; a local part such as ``+cpu`` counts only if asked for."""
    try:
        wanted, there = Version(asked), Version(got)
    except InvalidVersion:
        return asked == got
    return wanted.public == there.public and (wanted.local is None or wanted.local == there.local)


def _why(done: Completed) -> str:
    if done.timed_out:
        return f"it took longer than {IMPORT_TIMEOUT:.0f} s"
    if done.status is not None and done.status < 0:
        try:
            return f"ended by {signal.Signals(-done.status).name}"
        except ValueError:
            return f"ended by signal {-done.status}"
    lines = [line.strip() for line in done.errors.splitlines() if line.strip()]
    return lines[-1][:300] if lines else f"exit status {done.status}"
