"""Requirements of packages, as PEP 508 has them: nothing else reaches an installer's command line."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from torchbisect.core.errors import InputError
from torchbisect.core.scrub import scrub

_LONGEST = 2000
#: Endings by which an installer takes a name for a file.
_FILES = re.compile(r"\.(?:whl|zip|tar|t?gz|bz2|xz|zst|egg|txt|in|toml|py|cfg)$", re.IGNORECASE)


def parse_requirement(text: str, *, sdists: bool = False) -> str:
    """Return a requirement in its normal form, which begins with the package's name and has one line.

    Options, paths, files and several requirements in one are refused, and torch in a version of its own. The address of
    a wheel is accepted; with ``sdists`` also that of a source package or a repository.

    Raises:
        InputError: the text is none of these.
    """
    shown = scrub(" ".join(repr(text[:200])[1:-1].split()))
    wrong = f"--with {shown!r}" if " " in shown else f"--with {shown}"
    if not text.strip():
        raise InputError("--with: the package's name is empty; write --with numpy, say")
    if len(text) > _LONGEST or not text.isprintable():
        raise InputError(f"{wrong}: write one package, such as 'numpy>=2', and repeat --with for each")
    try:
        found = Requirement(text)
    except InvalidRequirement:
        raise InputError(
            f"{wrong}: this is not a package; write its name, or with a version as in 'numpy>=2'"
        ) from None
    if _FILES.search(found.name):
        raise InputError(f"{wrong}: this is a file; name its folder by UV_FIND_LINKS, and here the package alone")
    if canonicalize_name(found.name) == "torch" and (found.specifier or found.url):
        raise InputError(f"{wrong}: torch itself is chosen by --torch, --good and --bad; leave this out")
    if found.url:
        _check_address(wrong, found.url, sdists)
    return str(found)


def requirement_name(requirement: str) -> str:
    """Return the package's name in a requirement that ``parse_requirement`` returned."""
    return canonicalize_name(Requirement(requirement).name)


def _check_address(wrong: str, url: str, sdists: bool) -> None:
    """Raise ``InputError`` unless an address may be installed from."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        raise InputError(f"{wrong}: the address can't be read; write https://HOST/NAME.whl") from None
    # uv replaces ${NAME} by the value of a variable.
    web = parts.scheme in ("http", "https") or (sdists and parts.scheme in ("git+https", "git+ssh"))
    if not web or not host or "$" in url:
        raise InputError(
            f"{wrong}: only an address such as https://HOST/NAME.whl is read; UV_FIND_LINKS names a folder of wheels"
        )
    if not sdists and not parts.path.endswith(".whl"):
        raise InputError(
            f"{wrong}: this is not the address of a wheel; --allow-sdists builds source packages, which runs their code"
        )
