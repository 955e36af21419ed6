"""Meaning of uv's error messages, as errors that the rest of torchbisect acts on.

Three kinds are told apart, since mixing them would give wrong answers. A build that can't be installed
(``InstallFailed``) is skipped by a search. A network that fails for now (``Transient``) is tried again. A machine that
fails for good (``MachineError``) ends the run. The patterns match uv's own words; the tests run the real uv.
"""

from __future__ import annotations

import re
from pathlib import Path

from packaging.utils import canonicalize_name

from torchbisect.containers.index.indexes import redact_urls
from torchbisect.containers.store.disk import disk_full, is_disk_full_message
from torchbisect.core.build import Build
from torchbisect.core.errors import IndexUnreachable, InputError, InstallFailed, MachineError, TorchbisectError
from torchbisect.core.retry import Transient

_FORBIDDEN = re.compile(r"\b(401 Unauthorized|403 Forbidden|lack of valid authentication)")
_UNTRUSTED = re.compile(r"invalid peer certificate|UnknownIssuer|certificate verify failed", re.IGNORECASE)
#: uv's words for a network that fails for now; the statuses among them are those of ``is_transient_status``.
_NETWORK_FAILURE = re.compile(
    r"error sending request|client error \(|tcp connect error|dns error|connection (?:refused|reset|closed)|timed out"
    r"|end of file before message length|error reading a body|error decoding response body|server error \(5\d\d"
    r"|\(?429 Too Many|\(?425 Too Early|\(?408 Request|broken pipe|network is unreachable|incomplete message",
    re.IGNORECASE,
)
_MISSING_FILE = re.compile(r"404 Not Found|failed to open file `[^`]*\.whl`: No such file", re.IGNORECASE)
_UNKNOWN = re.compile(r"(?:Because |and )(\S+) was not found in the")
_NO_WHEEL = re.compile(r"(\S+?)(?:[=<>!~]=?\S+)? has no (?:usable )?wheels")
_BROKEN = re.compile(r"(\S+?)(?:[=<>!~]=?\S+)? has an? (?:invalid package format|inconsistent metadata)")
_PYTHON = re.compile(r"(\S+?)(?:[=<>!~]=?\S+)? depends on Python\s*[<>=!~]")
_NO_VERSION = re.compile(r"there (?:is|are) no versions? of ([A-Za-z0-9_.\-]+)")
_BUILD = re.compile(
    r"Failed to build `?([^\s`]+)|build backend returned an error|Call to `[^`]*` failed", re.IGNORECASE
)
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
        packages: the names of the packages that the user asked for.
        indexes: the places that were searched, for messages.
    """
    text = re.sub(r"\s+", " ", redact_urls(message).translate(_FRAME)).strip()
    last = main_line(message)
    if is_disk_full_message(text):
        return disk_full(where)
    if _FORBIDDEN.search(text):
        return IndexUnreachable(f"an index refuses access ({indexes}): check the name and password in its address")
    if _UNTRUSTED.search(text):
        return IndexUnreachable(
            f"an index has a certificate that isn't trusted here ({last}): set SSL_CERT_FILE to those to trust"
        )
    if _MISSING_FILE.search(text):
        return InstallFailed("wheel-gone", f"the index lists a wheel for {build} that isn't there ({last})")
    if _NETWORK_FAILURE.search(text):
        return Transient(last)
    if "permission denied" in text.lower() or "read-only file system" in text.lower():
        return MachineError(f"the installer was refused by this machine ({last}): check who owns the cache folder")
    return _resolution_error(text, build, packages, indexes, last)


def _resolution_error(text: str, build: Build, packages: tuple[str, ...], indexes: str, last: str) -> TorchbisectError:
    """Return the error for a failed resolution; statements about torch itself come first."""
    named = {canonicalize_name(package) for package in packages}
    unknown = {canonicalize_name(name) for name in _UNKNOWN.findall(text)}
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
        if "torch" in {canonicalize_name(name) for name in pattern.findall(text)}:
            return InstallFailed(reason, f"torch {build} {says} ({last})")
    if _BUILD.search(text):
        return InstallFailed("dependency-build-failed", f"a requirement of {build} could not be built ({last})")
    if unknown or any(pattern.search(text) for pattern in (_NO_WHEEL, _PYTHON, _BROKEN, _NO_VERSION)):
        return InstallFailed("dependency-missing", f"a requirement of torch {build} can't be had here ({last})")
    if "only " in text and "available" in text and "No solution found" in text and not named:
        return InstallFailed("dependency-missing", f"a requirement of torch {build} can't be had here ({last})")
    if "No solution found" in text:
        return InstallFailed("dependency-conflict", f"what torch {build} requires does not go together ({last})")
    return InstallFailed("install-failed", f"torch {build} could not be installed ({last})")


def main_line(message: str) -> str:
    """Return the most telling line of a message: uv's innermost cause, else the last line; addresses are redacted."""
    lines = [" ".join(line.translate(_FRAME).split()) for line in redact_urls(message).splitlines()]
    lines = [line for line in lines if line and not line.startswith(("hint:", "warning:", "Using ", "Resolved "))]
    causes = [line for line in lines if line.startswith(("cause:", "Because ", "Caused by:"))]
    chosen = (causes or lines or ["no message"])[-1]
    chosen = re.sub(r"^(cause|error|Caused by):\s*", "", chosen)
    return chosen if len(chosen) <= 300 else chosen[:297] + "..."
