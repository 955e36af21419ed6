"""Meaning of uv's error messages, as errors that the rest of torchbisect acts on.

Three kinds are told apart, since mixing them would give wrong answers. A build that can't be installed
(``InstallFailed``) is skipped by a search. A network that fails for now (``Transient``) is tried again. A machine that
fails for good (``MachineError``) ends the run. The patterns match uv's own words; the tests run the real uv.
"""

from __future__ import annotations

import re
from pathlib import Path

from packaging.utils import canonicalize_name

from torchbisect.containers.store.disk import disk_full, is_disk_full_message
from torchbisect.core.build import Build
from torchbisect.core.errors import IndexUnreachable, InputError, InstallFailed, MachineError, TorchbisectError
from torchbisect.core.requirement import requirement_name
from torchbisect.core.retry import Transient
from torchbisect.core.scrub import scrub_secrets

_FORBIDDEN = re.compile(r"\b(401 Unauthorized|403 Forbidden|lack of valid authentication)")
_UNTRUSTED = re.compile(r"invalid peer certificate|UnknownIssuer|certificate verify failed", re.IGNORECASE)
#: uv's words for a network that fails for now; the statuses among them are those of ``is_transient_status``.
_NETWORK_FAILURE = re.compile(
    r"error sending request|client error \(|tcp connect error|dns error|connection (?:refused|reset|closed)|timed out"
    r"|end of file before message length|error reading a body|error decoding response body|server error \(5\d\d"
    r"|\(?429 Too Many|\(?425 Too Early|\(?408 Request|broken pipe|network is unreachable|incomplete message",
    re.IGNORECASE,
)
_WRONG_HASH = re.compile(r"hash mismatch|hashes? (?:do|does) not match", re.IGNORECASE)
_MISSING_FILE = re.compile(r"404 Not Found|failed to open file `[^`]*\.whl`: No such file", re.IGNORECASE)
_UNKNOWN = re.compile(r"(?:Because |and )(\S+) was not found in the")
#: What uv says of a package, whose requirement is the word before.
_NO_WHEEL = re.compile(r" has no (?:usable )?wheels")
_BROKEN = re.compile(r" has an? (?:invalid package format|inconsistent metadata)")
_PYTHON = re.compile(r" depends on Python ?[<>=!~]")
_NO_VERSION = re.compile(r"there (?:is|are) no versions? of ([A-Za-z0-9_.\-]+)")
_VERSIONS = re.compile(r"[=<>!~]")
_RESERVED = re.compile(r"[Ss]cripts must not use the reserved name")
_BUILD = re.compile(
    r"Failed to build `?([^\s`]+)|build backend returned an error|Call to `[^`]*` failed", re.IGNORECASE
)
_NO_SDIST = re.compile(r"has no usable wheels|building from source is disabled|has no wheels with a matching")
_FRAME = str.maketrans(dict.fromkeys("×╰─▶│├→", " "))


def error_from_uv(
    message: str, build: Build, where: Path, *, packages: tuple[str, ...] = (), indexes: str = ""
) -> Transient | TorchbisectError:
    """Return the error that uv's message means for this build.

    That is ``Transient``, or ``InstallFailed`` if the build is at fault, ``InputError`` if one of the user's packages
    is, ``MachineError`` or a subclass if this machine is.

    Args:
        message: everything that uv wrote to standard error.
        where: the folder it was written to, for the message of a full disk.
        packages: the requirements of the packages that the user asked for.
        indexes: the places that were searched, for messages.
    """
    text = re.sub(r"\s+", " ", scrub_secrets(message).translate(_FRAME)).strip()
    last = main_line(message)
    if is_disk_full_message(text):
        return disk_full(where)
    if _FORBIDDEN.search(text):
        return IndexUnreachable(f"an index refuses access ({indexes}): check the name and password in its address")
    if _UNTRUSTED.search(text):
        return IndexUnreachable(
            f"an index has a certificate that isn't trusted here ({last}): set SSL_CERT_FILE to those to trust"
        )
    if _WRONG_HASH.search(text):
        return InstallFailed("wrong-hash", f"a wheel for {build} has another hash than the index says ({last})")
    if _MISSING_FILE.search(text):
        return InstallFailed("wheel-gone", f"the index lists a wheel for {build} that isn't there ({last})")
    if _NETWORK_FAILURE.search(text):
        return Transient(last)
    if "permission denied" in text.lower() or "read-only file system" in text.lower():
        return MachineError(f"the installer was refused by this machine ({last}): check who owns the cache folder")
    return _resolution_error(text, build, packages, indexes, last)


def _resolution_error(text: str, build: Build, packages: tuple[str, ...], indexes: str, last: str) -> TorchbisectError:
    """Return the error for a failed resolution; statements about torch itself come first."""
    named = set(map(requirement_name, packages))
    unknown = _packages(_UNKNOWN, text)
    if "torch" in unknown:
        return IndexUnreachable(f"there is no torch at all in {indexes or 'the indexes'}: correct --index-url")
    if unknown & named:
        name = min(unknown & named)
        return InputError(f"there is no package {name} in {indexes or 'the indexes'}: correct --with {name}")
    for pattern, reason, says in (
        (_NO_WHEEL, "no-wheel", "has no wheel for this Python and this machine"),
        (_PYTHON, "no-wheel", "isn't made for this version of Python"),
        (_BROKEN, "broken-wheel", "has a wheel that can't be read"),
        (_NO_VERSION, "no-such-build", "isn't in the index"),
    ):
        if "torch" in _packages(pattern, text):
            return InstallFailed(reason, f"torch {build} {says} ({last})")
    broken = named & _packages(_BROKEN, text)
    if broken:
        return InstallFailed("broken-wheel", f"--with {min(broken)} has a wheel that can't be read ({last})")
    if _RESERVED.search(text):
        return InputError(f"a package of torch {build} or of --with can't be installed anywhere ({last}): leave it out")
    if _BUILD.search(text):
        return InstallFailed("dependency-build-failed", f"a requirement of {build} could not be built ({last})")
    if unknown or any(pattern.search(text) for pattern in (_NO_WHEEL, _PYTHON, _BROKEN, _NO_VERSION)):
        return InstallFailed("dependency-missing", f"a requirement of torch {build} can't be had here ({last})")
    if "only " in text and "available" in text and "No solution found" in text and not named:
        return InstallFailed("dependency-missing", f"a requirement of torch {build} can't be had here ({last})")
    if "No solution found" in text and packages:
        beside = f"torch {build} and --with {' --with '.join(packages)} do not go together"
        return InstallFailed("dependency-conflict", f"{beside} ({last})")
    if "No solution found" in text:
        return InstallFailed("dependency-conflict", f"what torch {build} requires does not go together ({last})")
    return InstallFailed("install-failed", f"torch {build} could not be installed ({last})")


def _packages(pattern: re.Pattern[str], text: str) -> set[str]:
    """Return the packages of which a text says this: named by the pattern's group, or by the word before it."""
    if pattern.groups:
        return {canonicalize_name(name) for name in pattern.findall(text)}
    words = (text[text.rfind(" ", 0, found.start()) + 1 : found.start()] for found in pattern.finditer(text))
    return {canonicalize_name(_VERSIONS.split(word, 1)[0]) for word in words}


def error_of_package(message: str, package: str, indexes: str) -> InputError | None:
    """Return the error of a package of the user's that can't be had without torch either.

    That is ``None`` if uv's message speaks of a torch that the package needs, or of the network.
    """
    text = re.sub(r"\s+", " ", scrub_secrets(message).translate(_FRAME)).strip()
    last, name = main_line(message), requirement_name(package)
    if re.search(r"\btorch\b", text) or _NETWORK_FAILURE.search(text) or _FORBIDDEN.search(text):
        return None
    if name in _packages(_UNKNOWN, text):
        return InputError(f"there is no package {name} in {indexes or 'the indexes'}: correct --with {name}")
    if _NO_SDIST.search(text):
        return InputError(
            f"--with {package} has no wheel for this Python and this machine ({last}): name another version, or build "
            "it from source with --allow-sdists, which runs its code"
        )
    return InputError(f"--with {package} can't be had ({last}): name another version")


def main_line(message: str) -> str:
    """Return the most telling line of a message: uv's innermost cause, else the last line; addresses are redacted."""
    lines = [" ".join(line.translate(_FRAME).split()) for line in scrub_secrets(message).splitlines()]
    lines = [line for line in lines if line and not line.startswith(("hint:", "warning:", "Using ", "Resolved "))]
    causes = [line for line in lines if line.startswith(("cause:", "Because ", "Caused by:"))]
    chosen = (causes or lines or ["no message"])[-1]
    chosen = re.sub(r"^(cause|error|Caused by):\s*", "", chosen)
    return chosen if len(chosen) <= 300 else chosen[:297] + "..."
