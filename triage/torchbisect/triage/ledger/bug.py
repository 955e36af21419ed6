"""A known bug: what is asked about it, all of it from its report."""

from __future__ import annotations

import itertools
import math
import shlex
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from packaging.version import InvalidVersion, Version

from torchbisect.bisect.search.evidence import BoundaryKind
from torchbisect.core.decode import DecodeError, decode
from torchbisect.core.errors import InputError
from torchbisect.core.repro import Repro, Settings, fingerprint
from torchbisect.pipeline.options import Options
from torchbisect.probe.judge.matching import Strictness
from torchbisect.probe.judge.signature import Signature
from torchbisect.probe.oracle import Question
from torchbisect.reports.model.report import MismatchReport, Report
from torchbisect.triage.issue_row import called_operators
from torchbisect.triage.ledger.state import Edge, Standing, State, is_newer

#: The chance that a flaky bug which is there hides in all runs of one answer.
_MISSED = 0.01
_MOST_RUNS = 100
#: The options of a report's command that are part of the question, and the types of their values.
_OPTIONS: dict[str, type] = {
    "device": str,
    "slower_than": float,
    "max_compile_time": float,
    "max_recompiles": int,
    "max_graph_breaks": int,
    "timeout": float,
    "repeat": int,
    "seed": int,
}


@dataclass(frozen=True)
class AskedScript:
    """A script of a bug, with the mismatch and the settings that it is asked with.

    Attributes:
        name: ``minimal`` or ``original``.
        signature: the signature of the mismatch, in JSON.
        settings: the settings of the compiler, in JSON.
    """

    name: str
    source: str
    signature: dict[str, Any]
    settings: dict[str, Any]

    def question(self, bug: KnownBug) -> Question:
        """Return the question about it, as other builds are asked. Raises ``InputError`` if it was spoiled."""
        try:
            settings = replace(Settings(**self.settings), knobs=tuple(map(tuple, self.settings.get("knobs", ()))))
            signature = Signature.from_json(self.signature)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{bug.name}: the signature of its {self.name} script can't be read: {error}") from error
        repro = Repro(self.source, bug.arguments if self.name == "original" else (), bug.seed)
        return Question(repro, signature, settings, strictness=Strictness.TOLERANT)


@dataclass(frozen=True)
class KnownBug:
    """A bug that is watched.

    Attributes:
        name: the issue, or the folder of its report.
        title: the title of the issue, or the file name of the script.
        url: the address of the issue, for people.
        summary: the mismatch in one line.
        kind: the kind of mismatch.
        fingerprint: the fingerprint of the original's signature.
        scripts: the scripts that are asked: the minimal one first where there is one, then the original.
        packages: the packages that they need beside torch.
        options: the options of the report's command that are part of the question.
        arguments: the arguments of the original.
        rate: the share of the runs that showed it when it was reported.
    """

    name: str
    title: str = ""
    url: str = ""
    summary: str = ""
    kind: str = ""
    fingerprint: str = ""
    scripts: tuple[AskedScript, ...] = ()
    packages: tuple[str, ...] = ()
    options: dict[str, Any] | None = None
    arguments: tuple[str, ...] = ()
    rate: float = 1.0

    @property
    def key(self) -> str:
        """Fingerprint of everything that is asked: a bug with another key is asked anew."""
        asked = [(one.name, one.source, one.signature, one.settings) for one in self.scripts]
        return fingerprint(asked, self.packages, self.options or {}, self.arguments, self.rate)

    @property
    def seed(self) -> int:
        """The seed of every random generator."""
        return int((self.options or {}).get("seed", 0))

    @property
    def runs(self) -> int:
        """The runs behind an answer ``none``; more than one for a flaky bug."""
        if self.rate >= 1.0:
            return 1
        return min(_MOST_RUNS, math.ceil(math.log(_MISSED) / math.log(1 - max(self.rate, 0.05))))

    @property
    def operators(self) -> str:
        """The operators that the smallest script calls, as ``IssueRow`` has them."""
        return " ".join(called_operators(self.scripts[0].source)) if self.scripts else ""

    def applied_to(self, options: Options) -> Options:
        """Return the options of a run with what this bug's question needs."""
        packages = tuple(dict.fromkeys((*options.packages, *self.packages)))
        return replace(options, packages=packages, **(self.options or {}))

    def to_json(self) -> dict[str, Any]:
        """Return the bug as JSON values, for ``from_json``."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Any) -> KnownBug:
        """Read the value that ``to_json`` returned. Raises ``DecodeError`` for another value."""
        bug = decode(cls, data, "bug")
        unknown = set(bug.options or {}) - set(_OPTIONS)
        if unknown or not all(isinstance(value, _OPTIONS[name]) for name, value in (bug.options or {}).items()):
            raise DecodeError("bug.options has a value that is no option of a question")
        return bug


def known_bug(report: Report, name: str, *, title: str = "", url: str = "") -> KnownBug | str:
    """Return the bug of a report, or the reason in words why it can't be watched."""
    mismatch = report.mismatch
    if mismatch is None or report.verdict not in ("mismatch", "flaky") or report.environment is None:
        return "its report shows no mismatch"
    words = shlex.split(report.command)
    # What follows are the script's own arguments.
    words = words[: words.index("--")] if "--" in words else words
    if "--test" in words:
        return "a test of the user's own decides (--test), which can't be repeated from its report"
    scripts = tuple(_scripts(report, mismatch, alone="--files" not in words and "-m" not in words))
    if not scripts:
        return "its report has no script: a newer torchbisect writes one into it"
    return KnownBug(
        name,
        title or (report.original.name if report.original else ""),
        url,
        (report.shown_mismatch or mismatch).summary,
        mismatch.kind,
        mismatch.fingerprint,
        scripts,
        tuple(value for flag, value in itertools.pairwise(words) if flag == "--with"),
        _options_in(words),
        report.arguments,
        mismatch.shown / mismatch.runs if report.verdict == "flaky" and mismatch.runs else 1.0,
    )


def _scripts(report: Report, mismatch: MismatchReport, *, alone: bool) -> list[AskedScript]:
    found = []
    minimal = report.minimal
    if minimal is not None and minimal.source:
        own = minimal.mismatch or mismatch
        # A script that fails under plain Python needs no settings but its own.
        settings = {} if minimal.stands_alone else _settings(report)
        found.append(AskedScript("minimal", minimal.source, own.signature, settings))
    if report.original is not None and report.original.source and (alone or not found):
        found.append(AskedScript("original", report.original.source, mismatch.signature, {}))
    return found


def _settings(report: Report) -> dict[str, Any]:
    """Return the localized settings in the form of ``Settings``."""
    given = report.localization.settings if report.localization else {}
    names = {field.name for field in fields(Settings)} - {"knobs"}
    knobs = [[name.removeprefix("torch."), value] for name, value in given.items() if name not in names]
    settings = {name: value for name, value in given.items() if name in names}
    return {**settings, **({"knobs": knobs} if knobs else {})}


def _options_in(words: list[str]) -> dict[str, Any]:
    """Return the options of a report's command that are part of the question; one that can't be read is left out."""
    found: dict[str, Any] = {}
    for flag, value in itertools.pairwise(words):
        name = flag.removeprefix("--").replace("-", "_")
        if flag.startswith("--") and name in _OPTIONS:
            try:
                found[name] = _OPTIONS[name](value)
            except ValueError:
                continue
    return found


def reported_standing(report: Report) -> Standing:
    """Return what a report says of a bug: where it was seen, and where it is fixed if that was found.

    Raises ``InputError`` if the report names no version of torch.
    """
    environment = report.environment
    bad = public_version(environment.torch if environment else "")
    fix = report.bisect.fix if report.bisect else None
    state = State.FLAKY if report.verdict == "flaky" else State.REPRODUCES
    summary = report.mismatch.summary if report.mismatch else ""
    day = (report.started or "")[:10]
    if fix is not None and fix.last_bad:
        last = public_version(fix.last_bad)
        bad = last if is_newer(last, bad) else bad
        if fix.first_fixed and is_newer(good := public_version(fix.first_fixed), bad):
            edge = Edge(BoundaryKind.FIX, bad, good, exact=fix.exact, searched=True)
            return Standing(State.FIXED, "compiled agrees with eager", good, bad, good, edge, day)
    return Standing(state, summary, bad, bad, day=day)


def public_version(text: str) -> str:
    """Return a version without its local part. Raises ``InputError`` if it is none."""
    try:
        return Version(text).public
    except InvalidVersion:
        raise InputError(f"{text[:60]!r} is no version of torch: the report can't be watched") from None
