"""A Python interpreter: its version, the wheels that it takes, and the torch installed beside it.

The interpreter itself is asked, once: the one that runs torchbisect may be another version.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.tags import Tag, compatible_tags, cpython_tags, mac_platforms
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from torchbisect.containers.process.run_command import run_command
from torchbisect.containers.store.run_folder import temporary_folder
from torchbisect.core.decode import DecodeError, JsonLimits, decode, read_object
from torchbisect.core.errors import InputError, MachineError
from torchbisect.core.printable import one_line

#: The oldest Python that can run the agent, which runs beside torch.
OLDEST_PYTHON = (3, 8)

#: Script that prints a description of its Python; the answer is the last line of its output, as JSON.
INTERPRETER_QUERY = r"""
import json, os, platform, site, sys, sysconfig
try:
    from importlib.metadata import version
    torch = version("torch")
except Exception:
    torch = None
try:
    libc = os.confstr("CS_GNU_LIBC_VERSION")
except Exception:
    libc = None
json.dump({
    "version": list(sys.version_info[:3]),
    "implementation": sys.implementation.name,
    "platform": sysconfig.get_platform(),
    "libc": libc,
    "mac": platform.mac_ver()[0],
    "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    "debug": bool(sysconfig.get_config_var("Py_DEBUG")),
    "base": os.path.realpath(getattr(sys, "_base_executable", sys.executable) or sys.executable),
    "user_base": site.getuserbase(),
    "torch": torch,
}, sys.stdout)
"""


_LIMITS = JsonLimits(size=1 << 16)
#: The largest number of a version: tags are made for every number below it.
_LARGEST_NUMBER = 200
#: Seconds for an answer; on two cores with fourteen busy processes one took more than a minute.
_ANSWER_SECONDS = 300.0
_GLIBC = re.compile(r"glibc [0-9]{1,2}\.([0-9]{1,2})(?![0-9])")
_MAC = re.compile(r"([0-9]{1,2})(?:\.([0-9]{1,2}))?(?![0-9])")


@dataclass(frozen=True)
class _Answer:
    """The answer to ``INTERPRETER_QUERY``."""

    version: tuple[int, int, int]
    implementation: str = ""
    platform: str = ""
    libc: str | None = None
    mac: str = ""
    free_threaded: bool = False
    debug: bool = False
    base: str = ""
    user_base: str | None = None
    torch: str | None = None


@dataclass(frozen=True)
class Interpreter:
    """One Python on this machine.

    Attributes:
        path: the executable; in a virtual environment the path inside it, since its target has other packages.
        version: ``3.11.7``.
        abi: the tag of its binary interface: ``cp311``, ``cp313t``.
        platforms: the platform tags of wheels that it takes, best first.
        installed_torch: the version of the torch beside it, or ``None``.
        base: the executable it was made from, links followed; environments are made from that one.
        user_base: the folder of packages that this user installed with ``pip install --user``.
    """

    path: Path
    version: str
    abi: str
    platforms: tuple[str, ...]
    installed_torch: str | None = None
    base: Path = Path()
    user_base: str = ""

    @classmethod
    def of(cls, path: str | Path) -> Interpreter:
        """Return the interpreter at ``path``: an executable, a virtual environment's folder, or a name on ``PATH``.

        Raise ``InputError`` if there is no CPython 3.8 or newer that starts.
        """
        place = _locate(path)
        return cls.from_answer(place, _ask(place))

    @classmethod
    def from_answer(cls, place: Path, text: str) -> Interpreter:
        """Return the interpreter with this answer to ``INTERPRETER_QUERY``. Raise ``InputError`` if it is unfit."""
        try:
            answer = decode(_Answer, read_object(text, _LIMITS), "its description")
        except DecodeError as error:
            raise InputError(
                f"{place} isn't a Python 3.8 or newer that works ({error}): name one with --python"
            ) from error
        version = answer.version
        written = ".".join(map(str, version))
        if version[:2] < OLDEST_PYTHON or max(version) > _LARGEST_NUMBER:
            raise InputError(f"{place} is Python {written}: name one with --python that is 3.8 or newer")
        if answer.implementation != "cpython":
            shown = one_line(answer.implementation, 40)
            raise InputError(f"{place} is {shown}, for which there is no torch: name a CPython with --python")
        suffix = ("t" if answer.free_threaded else "") + ("d" if answer.debug else "")
        return cls(
            path=place,
            version=written,
            abi=f"cp{version[0]}{version[1]}{suffix}",
            platforms=tuple(_platforms(answer.platform, answer.libc or "", answer.mac)),
            installed_torch=answer.torch,
            base=Path(answer.base),
            user_base=answer.user_base or "",
        )

    @property
    def major_minor(self) -> tuple[int, int]:
        """The first two numbers of the version."""
        release = Version(self.version).release
        return release[0], release[1]

    @functools.cached_property
    def tags(self) -> frozenset[Tag]:
        """All tags of wheels that this Python takes."""
        own = cpython_tags(self.major_minor, [self.abi], list(self.platforms))
        name = f"cp{self.major_minor[0]}{self.major_minor[1]}"
        return frozenset([*own, *compatible_tags(self.major_minor, name, list(self.platforms))])

    def accepts(self, filename: str) -> bool:
        """Return true if a file of this name is a wheel for this Python on this machine."""
        try:
            return not self.tags.isdisjoint(parse_wheel_filename(filename)[3])
        except (InvalidWheelFilename, ValueError):
            return False

    @property
    def identity(self) -> str:
        """A short digest of version, ABI and executable; environments of equal digests are interchangeable."""
        description = f"{self.base}|{self.version}|{self.abi}|{self.platforms[:1]}"
        return hashlib.sha256(description.encode()).hexdigest()[:8]


def _locate(path: str | Path) -> Path:
    """Return the absolute path, links not followed; a folder means the environment in it, a bare name is looked up."""
    written = Path(path).expanduser()
    if os.path.isdir(written):
        for name in ("bin/python", "bin/python3"):
            if (written / name).exists():
                return Path(os.path.abspath(written / name))
        raise InputError(f"{path} is a folder with no bin/python in it: name a Python with --python")
    if not os.path.exists(written) and os.sep not in str(path):
        found = shutil.which(str(path))
        if found:
            return Path(found)
    if not os.path.exists(written):
        raise InputError(f"there is no Python at {path}: name one with --python")
    return Path(os.path.abspath(written))


def _ask(place: Path) -> str:
    """Return the last line of what a Python prints about itself; site hooks may print first."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LD_LIBRARY_PATH") if name in os.environ}
    with temporary_folder("python") as empty:
        try:
            command = [str(place), "-c", INTERPRETER_QUERY]
            done = run_command(command, directory=empty, environment=kept, timeout=_ANSWER_SECONDS)
        except MachineError as error:
            raise InputError(f"{error}: name a Python with --python") from error
    if done.timed_out:
        raise MachineError(
            f"{place} did not answer in {_ANSWER_SECONDS:.0f} s: end other programs and run it again, or name another "
            "Python with --python"
        )
    answer = done.output.strip().splitlines()[-1:]
    if done.status or not answer:
        said = one_line(next(reversed((done.errors or done.output).strip().splitlines()), f"exit {done.status}"))
        raise InputError(f"{place} isn't a Python 3.8 or newer that works ({said}): name one with --python")
    return answer[0]


def _platforms(platform: str, libc: str, mac: str) -> Iterator[str]:
    """Yield the platform tags, best first: PEP 600 for Linux with glibc, none of PEP 656 (torch has no musl wheels)."""
    plain = platform.replace("-", "_").replace(".", "_")
    system, glibc = _MAC.match(mac), _GLIBC.match(libc)
    if plain.startswith("macosx") and system:
        machine = platform.rpartition("-")[2]
        yield from mac_platforms((int(system[1]), int(system[2] or 0)), machine)
        return
    if plain.startswith("linux") and glibc:
        machine = plain.partition("_")[2]
        older = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
        newest = int(glibc[1])
        floor = 5 if machine in ("x86_64", "i686") else 17
        for minor in range(newest, floor - 1, -1):
            yield f"manylinux_2_{minor}_{machine}"
            if minor in older:
                yield f"{older[minor]}_{machine}"
    yield plain
