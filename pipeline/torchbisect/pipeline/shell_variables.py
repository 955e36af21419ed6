"""The variables of the user's shell that a script gets, as it would under ``python``.

A run has a clean environment, so that a verdict does not depend on the shell by accident. The variables that the script
names, and those that only torch reads, are written into the script instead. There they can be seen. Every build gets
the same, and the shrunk script has those that it needs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from torchbisect.containers.process.run_command import PASSED_VARIABLES
from torchbisect.core.printable import one_line
from torchbisect.probe.script_variables import is_allowed, is_for_logs

_READ = re.compile(r"\b(?:environ\s*(?:\[|\.(?:get|pop|setdefault)\()|getenv\()\s*[\"'](\w{1,100})[\"']")
# A name that a function of the script's own is given, or the beginning of names, as in ``key.startswith("ACME_")``.
_NAMED = re.compile(r"[\"']([A-Z][A-Z0-9]*_[A-Z0-9_]{0,100})(?:[\"'%]|\{)")
_SECRET = re.compile(r"TOKEN|SECRET|PASS|KEY|CREDENTIAL|AUTH|COOKIE|SESSION", re.IGNORECASE)
# A run has its own, or they describe the terminal.
_OWN = frozenset({
    *PASSED_VARIABLES, "HOME", "USER", "LOGNAME", "PWD", "OLDPWD", "SHELL", "TERM", "LANG", "TMPDIR", "TEMP", "TMP",
    "HOSTNAME", "VIRTUAL_ENV", "_",
})  # fmt: skip
# Scripts that want equal runs look at it.
_HARMLESS = frozenset({"PYTHONHASHSEED"})
_OWN_BEGINNINGS = ("LC_", "PYTHON", "PYTEST_", "XDG_", "TORCHBISECT_")
# Of the variables that every process of a run is given: those by which another shell can get another verdict.
_SHAPE_RESULTS = ("OMP_", "MKL_", "OPENBLAS_", "NUMEXPR_", "CUDA_VISIBLE_")
_LONGEST_VALUE = 1_000
_SHORTEST_BEGINNING = 2


def shell_variables(texts: Sequence[str], shell: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the variables that a script gets, and the names that it reads and does not get as they may be secrets.

    Args:
        texts: the script and the modules that it imports from its folder.
        shell: the user's variables.
    """
    read = _names_read(texts, shell)
    of_torch = {name for name, value in shell.items() if is_allowed(name, value) and not is_for_logs(name)}
    usable = [
        name
        for name in sorted((read & shell.keys()) | of_torch)
        if _may_be_given(name) and len(shell[name]) <= _LONGEST_VALUE
    ]
    # Torch's own are allowed by name and value; others of that kind name a folder or are set by the tool.
    usable = [name for name in usable if name in of_torch or not name.startswith(("TORCH", "PYTORCH", "TRITON"))]
    secrets = tuple(name for name in usable if name not in of_torch and _SECRET.search(name))
    return {name: shell[name] for name in usable if name not in secrets}, secrets


def _may_be_given(name: str) -> bool:
    return name in _HARMLESS or (name not in _OWN and not name.startswith(_OWN_BEGINNINGS))


def _names_read(texts: Sequence[str], shell: Mapping[str, str]) -> set[str]:
    """Return the names that a script reads: in a call, by a text of its own, or by the beginning of a name."""
    if not any("environ" in text or "getenv" in text or "env_prefix" in text for text in texts):
        return set()
    named = {name for text in texts for name in _NAMED.findall(text)}
    beginnings = tuple(name for name in named if name.endswith("_") and len(name) > _SHORTEST_BEGINNING)
    by_beginning = {name for name in shell if name.startswith(beginnings)} if beginnings else set()
    return {name for text in texts for name in _READ.findall(text)} | (named & shell.keys()) | by_beginning


def passed_variables(shell: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of the shell that every run gets and that shape its results, such as ``OMP_NUM_THREADS``."""
    return {name: shell[name] for name in PASSED_VARIABLES if name in shell and name.startswith(_SHAPE_RESULTS)}


def setting_line(variables: Mapping[str, str]) -> str:
    """Return the line of Python that sets variables; empty if there are none."""
    if not variables:
        return ""
    return "import os; " + "; ".join(f"os.environ[{name!r}] = {value!r}" for name, value in variables.items()) + "\n"


def notes_on(variables: Mapping[str, str], secrets: Sequence[str]) -> tuple[str, ...]:
    """Return lines for the user about what the script gets and does not get."""
    given = ", ".join(f"{name}={one_line(value, 60)}" for name, value in variables.items())
    notes = [f"the script gets {given} of your shell, and sets it first"] if given else []
    if secrets:
        notes.append(f"the script does not get {', '.join(secrets)} of your shell, which may be secret")
    return tuple(notes)
