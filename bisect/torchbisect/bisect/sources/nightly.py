"""Nightlies, from PyTorch's own index.

``s3_management/manage_v2.py`` in pytorch/test-infra writes one PEP 503 page for each variant (``cpu``, ``cu126``) with
about the last 60 dates. Older wheels mostly still exist, under the same kind of name. Some dates are missing and some
old ones survive. The minor version changes in the middle of a page. At the end of 2024 the platform tag changed from
``linux_x86_64`` to ``manylinux_2_28_x86_64``, and the files moved from one host to another. So this module relies on
the grammar of the names alone: a date exists if the page or the host says so.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING
from urllib.parse import quote

import httpx
from packaging.utils import parse_wheel_filename
from packaging.version import Version

from torchbisect.bisect.sources.branch_cuts import likely_minors
from torchbisect.bisect.sources.listing import LeftOut, Listing, Wheel, wheels_of
from torchbisect.bisect.sources.release import compile_unsupported_reason, no_wheel_reason
from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.core.build import Build, Channel
from torchbisect.core.errors import IndexUnreachable
from torchbisect.core.retry import (
    DEFAULT_RETRY,
    Notify,
    RetryPolicy,
    Transient,
    raise_for_transient_status,
    retry_transient,
    silent,
)
from torchbisect.core.scrub import scrub_secrets
from torchbisect.core.web import new_client

if TYPE_CHECKING:
    from pypi_simple import DistributionPackage

#: The index of all variants.
NIGHTLY_INDEX = "https://download.pytorch.org/whl/nightly"

#: The CUDA variants that are built every night since April 2026, by pytorch/test-infra's build matrix. Only ``cu126``
#: is older; it goes back to November 2024.
CUDA_VARIANTS = ("cu126", "cu130", "cu132")
#: All CUDA variants of nightlies since 2023, newest first.
CUDA_VARIANTS_EVER = ("cu134", "cu132", "cu130", "cu129", "cu128", "cu126", "cu124", "cu121", "cu118")

#: The hosts of the files, all with the same paths. When one is down, another may answer.
HOSTS = ("https://download.pytorch.org", "https://download-r2.pytorch.org")

#: Platform tags of torch's nightly wheels since 2023, the present ones first. Only those that the interpreter accepts
#: are tried.
_PLATFORMS = (
    "manylinux_2_28_x86_64",
    "linux_x86_64",
    "manylinux_2_28_aarch64",
    "linux_aarch64",
    "manylinux_2_17_aarch64.manylinux2014_aarch64",
    "win_amd64",
    "macosx_14_0_arm64",
    "macosx_12_0_arm64",
    "macosx_11_0_arm64",
    "macosx_11_0_x86_64",
)
_OLD_PLATFORMS = ("linux_x86_64", "linux_aarch64")
#: About the day from which on the newer of two tags is more likely.
_NEW_PLATFORMS_FROM = datetime.date(2025, 1, 1)


def index_url(variant: str, index: str = NIGHTLY_INDEX) -> str:
    """Return the address of one variant's index, for an installer."""
    return f"{index.rstrip('/')}/{variant}"


def date_of(version: Version) -> datetime.date | None:
    """Return the day in a nightly's version; ``None`` for any other version."""
    if version.dev is None:
        return None
    try:
        return datetime.datetime.strptime(str(version.dev), "%Y%m%d").date()
    except ValueError:
        return None


def nightlies(files: Iterable[DistributionPackage], interpreter: Interpreter, variant: str = "cpu") -> Listing:
    """Return the nightlies among the files of an index that can be asked with this Python on this platform, by date.

    ``variant`` is the local part of the wheels' versions; wheels without one (for macOS) are accepted too.
    """
    dated = [(date, wheel) for wheel in wheels_of(files) if (date := date_of(wheel.version)) is not None]
    ours = [(date, wheel.version, wheel) for date, wheel in dated if wheel.version.local in (variant, None)]
    ours.sort(key=lambda entry: entry[:2])
    builds: list[Build] = []
    left_out: list[LeftOut] = []
    chosen: dict[str, Wheel] = {}
    for (date, version), group in groupby(ours, key=lambda entry: entry[:2]):
        fitting = [wheel for _, _, wheel in group if not interpreter.tags.isdisjoint(wheel.tags)]
        reason = compile_unsupported_reason((version.major, version.minor), interpreter.major_minor)
        if not fitting or reason:
            left_out.append(LeftOut(str(version), reason or no_wheel_reason(interpreter)))
            continue
        builds.append(Build(str(version), Channel.NIGHTLY, date=date))
        chosen[str(version)] = min(fitting, key=lambda wheel: _platform_rank(wheel, interpreter))
    return Listing(tuple(builds), tuple(left_out), chosen)


def _platform_rank(wheel: Wheel, interpreter: Interpreter) -> int:
    """Return the position of a wheel's best tag in the interpreter's list of platforms."""
    platforms = [tag.platform for tag in wheel.tags if tag in interpreter.tags]
    return min(interpreter.platforms.index(p) if p in interpreter.platforms else 999 for p in platforms)


def candidate_urls(
    date: datetime.date,
    minors: Sequence[tuple[int, int]],
    interpreter: Interpreter,
    variant: str = "cpu",
    index: str = NIGHTLY_INDEX,
    hosts: Sequence[str] = HOSTS,
) -> list[str]:
    """Return the possible addresses of a nightly that no page lists, the likeliest first.

    ``minors`` are the minor versions it may have, the likeliest first (``branch_cuts.likely_minors``). ``variant`` is
    the local part of the version. The ``hosts`` beside that of ``index`` are tried only for PyTorch's own index.
    """
    path = index.rstrip("/")
    bases = [path]
    for host in hosts:
        if path.startswith(f"{host}/"):
            bases = [other + path[len(host) :] for other in sorted(hosts, key=lambda other: other != host)]
    platforms = sorted(_PLATFORMS, key=lambda name: (name in _OLD_PLATFORMS) is (date >= _NEW_PLATFORMS_FROM))
    urls = []
    for major, minor in minors:
        for platform in platforms:
            local = "" if platform.startswith("macosx") else f"+{variant}"
            version = f"{major}.{minor}.0.dev{date:%Y%m%d}{local}"
            name = f"torch-{version}-{interpreter.abi.removesuffix('t')}-{interpreter.abi}-{platform}.whl"
            if interpreter.accepts(name):
                urls += [f"{base}/{variant}/{quote(name)}" for base in bases]
    return urls


def nightlies_of_days(
    first: datetime.date,
    last: datetime.date,
    listed: Sequence[Build],
    exists: Callable[[str], bool],
    interpreter: Interpreter,
    variant: str = "cpu",
    index: str = NIGHTLY_INDEX,
) -> Listing:
    """Return the nightlies of all days from ``first`` to ``last``; those that no page lists are looked for one by one.

    ``listed`` has the nightlies on the page; ``exists`` returns true if there is a file at an address. A day without a
    file at any possible address is left out as missing.
    """
    known = {build.date: build for build in listed if build.date is not None}
    builds: list[Build] = []
    left_out: list[LeftOut] = []
    for offset in range((last - first).days + 1):
        date = first + datetime.timedelta(days=offset)
        if date in known:
            builds.append(known[date])
            continue
        minors = likely_minors(date, [*known.values(), *builds])
        urls = candidate_urls(date, minors, interpreter, variant, index)
        url = next((url for url in urls if exists(url)), None)
        if url is None:
            left_out.append(LeftOut(f"dev{date:%Y%m%d}", "missing from the index"))
            continue
        version = parse_wheel_filename(url.rpartition("/")[2].replace("%2B", "+"))[1]
        builds.append(Build(str(version), Channel.NIGHTLY, date=date, wheel=url))
    return Listing(tuple(builds), tuple(left_out))


class UrlProbe:
    """Checks for files by ``HEAD`` requests over one connection, and never asks again for a file that is missing."""

    def __init__(self, *, notify: Notify = silent, retry: RetryPolicy = DEFAULT_RETRY) -> None:
        self._missing: set[str] = set()
        self._notify = notify
        self._retry = retry
        self._client = new_client()

    def __enter__(self) -> UrlProbe:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def exists(self, url: str) -> bool:
        """Return true if there is a file at an address.

        Raise ``IndexUnreachable`` if its host does not answer, also after the retries. That does not mean "no".
        """
        if url in self._missing:
            return False

        def ask() -> int:
            try:
                status = self._client.head(url).status_code
            except httpx.InvalidURL as error:
                raise IndexUnreachable(
                    f"{scrub_secrets(url)} isn't an address that can be asked: correct it"
                ) from error
            except httpx.HTTPError as error:
                raise Transient(scrub_secrets(str(error)) or type(error).__name__) from error
            raise_for_transient_status(status)
            return status

        host = url.split("/")[2] if url.count("/") > 2 else url
        if retry_transient(ask, f"the host {scrub_secrets(host)}", notify=self._notify, retry=self._retry) == 200:
            return True
        self._missing.add(url)
        return False
