"""Names of torch's wheels, and builds of nightlies, for tests of indexes."""

from __future__ import annotations

import datetime

from torchbisect.core.build import Build, Channel


def wheel_name(version: str, python: str = "cp311", platform: str = "manylinux_2_28_x86_64") -> str:
    """Return the file name of a wheel of torch."""
    return f"torch-{version}-{python}-{python}-{platform}.whl"


def nightly(day: str, minor: str = "2.15") -> Build:
    """Return the nightly of a day such as ``2026-08-16``."""
    date = datetime.date.fromisoformat(day)
    return Build(f"{minor}.0.dev{date:%Y%m%d}+cpu", Channel.NIGHTLY, date=date)
