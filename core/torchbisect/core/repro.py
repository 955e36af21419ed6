"""A repro and its settings: the script as it is run, and how it is compiled."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Files:
    """The private copy of the user's files in which a script runs; paths in it are relative, with ``/``.

    Attributes:
        folder: the copy on this machine, from which each agent makes its own; empty if the script has no files.
        digest: of the names and the contents; empty if there are none.
        script: the folder of the script.
        search: the first entry of ``sys.path``.
        cwd: the working directory.
        paths: the folders of the user's ``PYTHONPATH``, which follow ``search``.
        argv0: ``sys.argv[0]`` relative to the working directory, or ``-``; empty for the path of the script.
        module: the dotted name of the module that is run as ``python -m`` does; empty for a script.
        typed_input: a file in ``folder`` with the standard input of every run; the script does not see the file. Empty
            where there is none, and a script that reads it can't be tested.
        home: the user's home; ``None`` for an empty folder outside of the copy.
        variables: variables of the environment, by name; they lead to caches of this machine.
    """

    folder: str = ""
    digest: str = ""
    script: str = ""
    search: str = ""
    cwd: str = ""
    argv0: str = ""
    module: str = ""
    typed_input: str = ""
    paths: tuple[str, ...] = ()
    home: str | None = None
    variables: tuple[tuple[str, str], ...] = ()

    @property
    def identity(self) -> tuple[str, ...]:
        """Everything of it that decides how a script runs: not where the copy lies."""
        return self.digest, self.script, self.search, self.cwd, self.argv0, self.module, *self.paths


@dataclass(frozen=True)
class Repro:
    """A failing script with everything that decides how it runs.

    Attributes:
        source: the script's text.
        arguments: the entries of ``sys.argv`` after the script's name.
        seed: set for ``random``, ``numpy`` and ``torch`` before the script starts.
        directory: the folder of the modules that the script imports, which need not be installed; ``None`` for a
            script that stands alone.
        name: the script's file name, for tracebacks.
        files: the copy of the user's files that it runs in; ``None`` for an empty folder with only those modules.
    """

    source: str
    arguments: tuple[str, ...] = ()
    seed: int = 0
    directory: str | None = None
    name: str = "repro.py"
    files: Files | None = None

    def with_source(self, source: str) -> Repro:
        """Return the same repro with another text."""
        return replace(self, source=source)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON that the agent reads."""
        return asdict(self)


@dataclass(frozen=True)
class Settings:
    """Settings that are passed to or set around ``torch.compile``; ``None`` keeps the script's own choice.

    Attributes:
        backend: replaces the backend of every ``torch.compile`` call.
        mode: replaces the mode; ``"default"`` means no mode. Only inductor takes a mode.
        dynamic: replaces ``dynamic``.
        compiled_autograd: turns compiled autograd on or off.
        knobs: compiler flags as pairs of a dotted name under ``torch`` (``_inductor.config.epilogue_fusion``) and a
            value. A flag that this torch lacks is skipped and reported.
    """

    backend: str | None = None
    mode: str | None = None
    dynamic: bool | None = None
    compiled_autograd: bool | None = None
    knobs: tuple[tuple[str, Any], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the JSON that the agent reads."""
        return {**asdict(self), "knobs": [list(pair) for pair in self.knobs]}


def fingerprint(*parts: Any) -> str:
    """Return a short stable name for values that JSON can hold, for use as a journal key."""
    text = json.dumps(parts, sort_keys=True, default=str, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]
