"""The numbers that a script can be measured by."""

from __future__ import annotations

import re
from dataclasses import dataclass

from torchbisect.core.errors import InputError

METRIC = "metric:"
#: Counts of the compiler, which are the same in every run.
COUNTS = ("kernel-count", "graph-breaks", "recompiles")
#: The numbers with noise, which take pairs of runs.
NOISY = ("time", "cpu-time", "compile-time", "memory")
#: What a user may type.
NAMES = (*NOISY, *COUNTS)
_UNITS = {"time": "s", "cpu-time": "s", "compile-time": "s", "memory": "bytes"}
_METRIC_NAME = re.compile(r"[A-Za-z_][\w.-]{0,63}")
_NUMBER = r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"


@dataclass(frozen=True)
class Measure:
    """A number of a script.

    Attributes:
        name: one of ``NAMES``, or the name that the script prints.
        printed: the script prints it, as a line ``NAME=12.3``.
    """

    name: str
    printed: bool = False

    @classmethod
    def parsed(cls, text: str) -> Measure:
        """Parse what a user types. Raises ``InputError`` for anything else.

        >>> Measure.parsed("metric:tokens_per_second")
        Measure(name='tokens_per_second', printed=True)
        """
        if text in NAMES:
            return cls(text)
        name = text.removeprefix(METRIC)
        if text.startswith(METRIC) and _METRIC_NAME.fullmatch(name):
            return cls(name, True)
        raise InputError(
            f"--measure {text}: write one of {', '.join(NAMES)}, or {METRIC}NAME for a line NAME=12.3 of the script"
        )

    @property
    def text(self) -> str:
        """The measure as a user types it."""
        return METRIC + self.name if self.printed else self.name

    @property
    def counted(self) -> bool:
        """True for a count, which needs one run of each build."""
        return not self.printed and self.name in COUNTS

    @property
    def depends_on_core(self) -> bool:
        """True if a run that moves from core to core would change it; a script may print anything."""
        return self.printed or self.unit == "s"

    @property
    def unit(self) -> str:
        """The unit of its values; empty for counts and for what a script prints."""
        return "" if self.printed else _UNITS.get(self.name, "")

    @property
    def needs_cold_compile(self) -> bool:
        """True if kernels that an earlier run compiled would change it; a script may print anything."""
        return self.printed or self.name == "compile-time"

    def read_printed(self, output: str) -> float | None:
        """Return the last number that a script printed under this name: ``NAME=12.3`` or ``NAME: 12.3``.

        >>> Measure("loss", True).read_printed("epoch=1\\nloss = 0.5\\nloss: 2.5e-1\\n")
        0.25
        """
        lines = re.findall(rf"^\s*{re.escape(self.name)}\s*[=:]\s*{_NUMBER}(?![\w.])", output, re.MULTILINE)
        return float(lines[-1]) if lines else None


def format_value(value: float, unit: str) -> str:
    """Write a value with its unit, for a reader.

    >>> format_value(0.00123, "s"), format_value(2.5, "s"), format_value(3 << 20, "bytes"), format_value(7, "")
    ('1.23 ms', '2.5 s', '3 MiB', '7')
    """
    if unit == "s":
        for factor, name in ((1, "s"), (1e3, "ms"), (1e6, "µs")):
            if value * factor >= 1:
                return f"{value * factor:.3g} {name}"
        return f"{value * 1e9:.3g} ns"
    if unit == "bytes":
        for factor, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
            if value >= factor:
                return f"{value / factor:.3g} {name}"
        return f"{value:.0f} bytes"
    return f"{value:.6g}"
