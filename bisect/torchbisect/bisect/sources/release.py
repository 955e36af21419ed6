"""Releases, from the page of any package index.

They are ordered by version, with patch releases: 2.4.1 before 2.5.0, which is also the order of their dates. A patch
release consists of cherry-picked changes on the release branch and is no point on main. So a pair of neighbors such as
2.4.1 and 2.5.0 only says between which branch cuts a change came to main (``branch_cuts``).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from torchbisect.bisect.sources.listing import LeftOut, Listing, Wheel, wheels_of
from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.core.build import Build, Channel
from torchbisect.core.scrub import scrub_secrets

if TYPE_CHECKING:
    from pypi_simple import DistributionPackage

#: For torch from this version on, ``torch.compile`` supports Pythons below that version, by
#: ``check_if_dynamo_supported`` in ``torch/_dynamo/eval_frame.py``. Wheels for newer Pythons exist and don't compile.
_COMPILES_BELOW = (
    ((2, 10), (3, 15)),
    ((2, 6), (3, 14)),
    ((2, 4), (3, 13)),
    ((2, 1), (3, 12)),
    ((2, 0), (3, 11)),
)
#: The newest torch in the table above. For newer ones the installed torch itself decides.
_KNOWN_UP_TO = (2, 13)


def compile_unsupported_reason(minor: tuple[int, int], python: tuple[int, int]) -> str | None:
    """Return why this torch can't compile under this Python; ``None`` if nothing is known against it."""
    if minor < (2, 0):
        return "torch.compile came with 2.0"
    if minor > _KNOWN_UP_TO:
        return None
    below = next(limit for since, limit in _COMPILES_BELOW if minor >= since)
    if python < below:
        return None
    return f"its torch.compile needs a Python below {below[0]}.{below[1]}"


def releases(
    files: Iterable[DistributionPackage],
    interpreter: Interpreter,
    variant: str | None = None,
    *,
    cpu_first: bool = False,
    compiles: bool = True,
) -> Listing:
    """Return the releases among the files of an index that can be asked with this Python on this platform, by version.

    With a ``variant``, only wheels with this local version (``cpu``, ``cu126``) are accepted, as on PyTorch's own
    index; a build is then exactly that wheel. By default a build is the public version, and the index decides. With
    ``cpu_first`` it is the wheel for the CPU wherever the index has one. Without ``compiles`` those are taken too that
    have no ``torch.compile`` for this Python.
    """
    wheels = [wheel for wheel in wheels_of(files) if variant in (None, wheel.version.local)]
    builds: list[Build] = []
    left_out: list[LeftOut] = []
    chosen: dict[str, Wheel] = {}
    cuda: dict[str, Build] = {}

    def key(wheel: Wheel) -> Version:
        return wheel.version if variant else Version(wheel.version.public)

    for version, group in groupby(sorted(wheels, key=key), key):
        usable, reason = _usable(version, list(group), interpreter, compiles=compiles)
        if reason is not None:
            left_out.append(LeftOut(str(version), reason))
            continue
        dates = [wheel.package.upload_time.date() for wheel in usable if wheel.package.upload_time]
        best = next((wheel for wheel in usable if cpu_first and wheel.version.local == "cpu"), None)
        other = next((wheel for wheel in usable if wheel.version.local != "cpu"), None)
        name, date = str(best.version if best else version), min(dates, default=None)
        builds.append(Build(name, Channel.RELEASE, date=date))
        chosen[name] = best or usable[0]
        if best and other:
            cuda[name] = Build(str(other.version), Channel.RELEASE, date=date, wheel=_address(other))
    return Listing(tuple(builds), tuple(left_out), chosen, cuda=cuda)


def _address(wheel: Wheel) -> str | None:
    """Return a wheel's address with its digest; ``None`` for one with a password, which other users could see."""
    if scrub_secrets(wheel.url) != wheel.url:
        return None
    digest = (wheel.package.digests or {}).get("sha256")
    return f"{wheel.url}#sha256={digest}" if digest else wheel.url


def _usable(
    version: Version, wheels: list[Wheel], interpreter: Interpreter, *, compiles: bool
) -> tuple[list[Wheel], str | None]:
    """Return the wheels of one version that can be installed here, or the reason that there is none."""
    if version.is_prerelease:
        return [], "a pre-release"
    minor = (version.major, version.minor)
    reason = compile_unsupported_reason(minor, interpreter.major_minor) if compiles else None
    if reason is not None and version < Version("2.0"):
        return [], reason
    standing = [wheel for wheel in wheels if not wheel.package.is_yanked]
    if not standing:
        why = wheels[0].package.yanked_reason
        return [], f"yanked: {why}" if why else "yanked"
    fitting = [wheel for wheel in standing if not interpreter.tags.isdisjoint(wheel.tags)]
    if not fitting:
        return [], no_wheel_reason(interpreter)
    allowed = [wheel for wheel in fitting if _accepts_python(wheel.package.requires_python, interpreter.version)]
    if not allowed:
        return [], f"requires Python {fitting[0].package.requires_python}"
    return allowed, reason


def no_wheel_reason(interpreter: Interpreter) -> str:
    """Return the reason for a version without a wheel for this Python on this platform."""
    platform = interpreter.platforms[0] if interpreter.platforms else "this platform"
    python = ".".join(map(str, interpreter.major_minor))
    return f"no wheel for Python {python} ({interpreter.abi}) on {platform}"


def _accepts_python(requires_python: str | None, python: str) -> bool:
    if not requires_python:
        return True
    try:
        return Version(python) in SpecifierSet(requires_python)
    except ValueError:  # a mistake of the index must not hide a release
        return True
