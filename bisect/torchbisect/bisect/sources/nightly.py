"""Nightlies, from PyTorch's own index.

What is known of it (pytorch/test-infra ``s3_management/manage_v2.py`` writes the pages): one page for each variant
(``cpu``, ``cu126``), PEP 503, with the last 60 dates or so; older wheels are mostly still there under the same kind of
name. Dates go missing, single old ones survive, the minor version steps on in mid-stream, the platform tag changed from
``linux_x86_64`` to ``manylinux_2_28_x86_64`` at the end of 2024, and the files moved from one host to another. So
nothing is taken for granted here but the name's grammar: a date is there if the page or the host says so.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from urllib.parse import quote

from packaging.utils import parse_wheel_filename
from packaging.version import Version
from pypi_simple import DistributionPackage, ProjectPage

from torchbisect.bisect.sources.branch_cuts import likely_minors
from torchbisect.bisect.sources.listing import LeftOut, Listing, Wheel, wheels_of
from torchbisect.bisect.sources.release import compile_unsupported_reason, no_wheel
from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.core.build import Build, Channel

#: The index of all variants.
NIGHTLY_INDEX = "https://download.pytorch.org/whl/nightly"

#: The CUDA variants that are built every night since April 2026 (pytorch/test-infra's matrix of builds). Only ``cu126``
#: reaches back further, to November 2024.
CUDA_VARIANTS = ("cu126", "cu130", "cu132")
#: All the CUDA variants that nightlies have had since 2023, newest first.
CUDA_VARIANTS_EVER = ("cu134", "cu132", "cu130", "cu129", "cu128", "cu126", "cu124", "cu121", "cu118")

#: The hosts that have had the files, under one path; where one has an outage, the other may not.
HOSTS = ("https://download.pytorch.org", "https://download-r2.pytorch.org")

#: Platform tags of torch's nightly wheels since 2023, the present ones first. Only what the interpreter takes is tried.
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
#: About the day from which on the newer of two tags is the likelier.
_NEW_PLATFORMS_FROM = datetime.date(2025, 1, 1)


def index_url(variant: str, index: str = NIGHTLY_INDEX) -> str:
    """The index of one variant, as an installer takes it."""
    return f"{index.rstrip('/')}/{variant}"


def date_of(version: Version) -> datetime.date | None:
    """The day in a nightly's version; ``None`` for any other version."""
    if version.dev is None:
        return None
    try:
        return datetime.datetime.strptime(str(version.dev), "%Y%m%d").date()
    except ValueError:
        return None


def nightlies(
    page: ProjectPage | Iterable[DistributionPackage], interpreter: Interpreter, variant: str = "cpu"
) -> Listing:
    """The nightlies on a page that can be asked with this Python on this platform, by date.

    Args:
        page: the index's page of torch for the variant, or files from several places.
        interpreter: the Python that environments will be made with.
        variant: the local part that the wheels must have; wheels with none (for macOS) are taken too.
    """
    found: list[tuple[datetime.date, Version, list[Wheel]]] = []
    dated = [(date, wheel) for wheel in wheels_of(page) if (date := date_of(wheel.version)) is not None]
    ours = [(date, wheel.version, wheel) for date, wheel in dated if wheel.version.local in (variant, None)]
    ours.sort(key=lambda entry: entry[:2])
    for (date, version), group in groupby(ours, key=lambda entry: entry[:2]):
        found.append((date, version, [wheel for _, _, wheel in group]))
    builds: list[Build] = []
    left_out: list[LeftOut] = []
    chosen: dict[str, Wheel] = {}
    for date, version, wheels in found:
        fitting = [wheel for wheel in wheels if not interpreter.tags.isdisjoint(wheel.tags)]
        reason = compile_unsupported_reason((version.major, version.minor), interpreter.numbers)
        if not fitting or reason:
            left_out.append(LeftOut(str(version), reason or no_wheel(interpreter)))
            continue
        builds.append(Build(str(version), Channel.NIGHTLY, date=date))
        chosen[str(version)] = min(fitting, key=lambda wheel: _place(wheel, interpreter))
    return Listing(tuple(builds), tuple(left_out), chosen)


def _place(wheel: Wheel, interpreter: Interpreter) -> int:
    """How far down the interpreter's list of platforms a wheel's best tag stands."""
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
    """Where a nightly that is on no page would lie, the likeliest address first.

    Args:
        date: the day.
        minors: the minor versions it may have, the likeliest first (``minors.likely_minors``).
        interpreter: whose wheels to look for.
        variant: the local part.
        index: the index; for any but PyTorch's own only its own host is tried.
        hosts: the hosts that mirror PyTorch's index.
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


def unlisted(
    first: datetime.date,
    last: datetime.date,
    listed: Sequence[Build],
    exists: Callable[[str], bool],
    interpreter: Interpreter,
    variant: str = "cpu",
    index: str = NIGHTLY_INDEX,
) -> Listing:
    """The nightlies from ``first`` to ``last`` with those that no page lists any more, found by asking for each.

    Args:
        listed: what the page has.
        exists: whether there is a file at an address; asked for one day at a time, until one is there.

    A day of which no address has a file is left out: missing, not judged.
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
        builds.append(_build_at(url, date))
    return Listing(tuple(builds), tuple(left_out))


def _build_at(url: str, date: datetime.date) -> Build:
    version = parse_wheel_filename(url.rpartition("/")[2].replace("%2B", "+"))[1]
    return Build(str(version), Channel.NIGHTLY, date=date, wheel=url)
