"""A provider that answers from a table: whole runs in milliseconds, with no torch, no process and no network.

A script is only text here. It shows the mismatch on a build if it contains one of the words that the table lists for
that build; under plain Python it fails for the same reason.
"""

from __future__ import annotations

import datetime
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar

from packaging.version import Version

from torchbisect.bisect.sources.listing import Listing
from torchbisect.containers.environment import Facts
from torchbisect.containers.process.run_command import Completed
from torchbisect.containers.python.interpreter import Interpreter
from torchbisect.containers.store.cache import Cache
from torchbisect.core.build import Build, Channel
from torchbisect.core.errors import InputError, InstallFailed
from torchbisect.core.repro import Repro, Settings, fingerprint
from torchbisect.core.trace import Trace
from torchbisect.core.verdict import Answer, MismatchKind, Verdict
from torchbisect.probe.agent_client import ToolAnswer
from torchbisect.probe.journal import Journal
from torchbisect.probe.judge.classify import Mismatch
from torchbisect.probe.judge.environment_faults import Untestable
from torchbisect.probe.judge.observation import Ending, Observation
from torchbisect.probe.judge.signature import Signature
from torchbisect.probe.limits import Limits
from torchbisect.probe.oracle import Question

SIGNATURE = Signature(MismatchKind.RAISES, exception="RuntimeError", message="wrong")
MISMATCH = Mismatch(MismatchKind.RAISES, "the compiled script raises RuntimeError: wrong", SIGNATURE)
_NIGHTLY = re.compile(r"\.dev(\d{4})(\d{2})(\d{2})")


@dataclass(frozen=True)
class Asked:
    """A question that no journal answered.

    Attributes:
        what: the method of the oracle, ``plain`` for a run under plain Python, or ``install``.
        build: the name of the build.
        source: the text of the script.
        settings: the settings of the compiler.
    """

    what: str
    build: str
    source: str = ""
    settings: Settings = field(default_factory=Settings)


@dataclass
class Table:
    """The truth about each build, and a record of every question that was asked.

    Attributes:
        wrong: by the name of each build the words that make a script fail there; releases and nightlies by name.
        variants: by the name of a build the variant of its wheel; ``cpu cu128`` for a build with two.
        refused: by the name of a build the reason why it can't be installed.
        backends: the backends that show the mismatch; all if empty.
        pattern: whether single runs show what is wrong, in turn; for scripts that do not fail every time.
        fresh_agrees: a fresh process shows what a warm one does.
        mismatch: the one mismatch that there is.
        untestable: the reason why no script is evidence, or ``None``.
        on_question: is called before each answer, and may raise.
        on_prefetch: is called for an install ahead of its question, with the event that ends it.
        asked: every question, in order.
        leases: environments that were leased and not released, by build.
    """

    wrong: Mapping[str, Sequence[str]]
    variants: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    backends: tuple[str, ...] = ()
    pattern: tuple[bool, ...] = (True,)
    fresh_agrees: bool = True
    mismatch: Mismatch = MISMATCH
    untestable: Untestable | None = None
    on_question: Callable[[Asked], None] = lambda asked: None
    on_prefetch: Callable[[Build, threading.Event], None] = lambda build, cancel: None
    asked: list[Asked] = field(default_factory=list)
    leases: Counter[str] = field(default_factory=Counter)
    _runs: Counter[str] = field(default_factory=Counter)

    def shows(self, build: Build, source: str, settings: Settings | None = None) -> bool:
        """Return true if a script fails on a build."""
        backend = settings.backend if settings else None
        if self.backends and backend is not None and backend not in self.backends:
            return False
        return any(word in source for word in self.wrong[build.name])

    def ask(self, what: str, build: Build, source: str = "", settings: Settings | None = None) -> bool:
        """Record a question, and answer it."""
        asked = Asked(what, build.name, source, settings or Settings())
        self.on_question(asked)
        self.asked.append(asked)
        return bool(source) and self.shows(build, source, settings)

    def run_once(self, build: Build, question: Question) -> bool:
        """Record one run, which shows what is wrong as the pattern says."""
        shown = self.pattern[self._runs[build.name] % len(self.pattern)]
        self._runs[build.name] += 1
        return self.ask("run", build, question.repro.source, question.settings) and shown


def build_of(name: str) -> Build:
    """The build of a name."""
    day = _NIGHTLY.search(name)
    if day is None:
        return Build(name)
    return Build(name, Channel.NIGHTLY, datetime.date(*map(int, day.groups())))


def _variant(build: Build, variant: str) -> Build:
    return replace(build, version=f"{build.name}+{variant}")


@dataclass(frozen=True)
class TableEnvironment:
    """A build that runs scripts under plain Python as the table says."""

    table: Table
    build: Build
    compiler_cache: ClassVar[None] = None

    @property
    def facts(self) -> Facts:
        """Return the facts that a real environment would report."""
        variant = Version(self.build.version).local or ""
        return Facts(
            self.build.version, None, "3.11.7", "Linux", cuda=variant[2:] if variant.startswith("cu") else None
        )

    @property
    def local(self) -> bool:
        """Always."""
        return True

    def run(
        self,
        arguments: Sequence[str],
        *,
        timeout: float,
        directory: str | None = None,
        extra: Mapping[str, str] | None = None,
        cancel: threading.Event | None = None,
    ) -> Completed:
        """Run a script: it fails where the table says so, unless ``torch.compile`` is switched off; it has no trace."""
        if arguments[0] == "-c":
            return Completed(0, "", "", 0.0)
        source = Path(directory or "", arguments[0]).read_text(encoding="utf-8")
        failed = self.table.ask("plain", self.build, source) and "TORCHDYNAMO_DISABLE" not in (extra or {})
        return Completed(int(failed), "", "RuntimeError: wrong\n" if failed else "", 0.0)

    def start(self, arguments: Sequence[str], extra: Mapping[str, str] | None = None) -> Any:
        """Refuse: no test here starts a process."""
        raise AssertionError(f"a process was started: {arguments}")


@dataclass
class TableOracle:
    """Answers questions about one build from the table, and keeps its answers in the journal. See ``oracle.Oracle``."""

    table: Table
    environment: TableEnvironment
    journal: Journal
    repeat: int = 1
    limits: Limits = field(default_factory=Limits)
    compares_eager: bool = True
    runs_are_cheap: bool = True
    subject: str = "the script"
    pass_summary: str = "nothing is wrong"
    activity: str = ""

    def __enter__(self) -> TableOracle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, frames: TracebackType | None
    ) -> None:
        self.close()

    def clone(self) -> TableOracle:
        """Another oracle of the same build."""
        return TableOracle(self.table, self.environment, self.journal, self.repeat)

    def start(self, expected: Question | None = None) -> None:
        """Nothing has to be started."""

    def close(self) -> None:
        """Nothing has to be ended."""

    def observe(self, repro: Repro, settings: Settings | None = None) -> Observation:
        """Both runs: the compiled one raises where the script fails."""
        failed = self._kept("observe", repro, settings)
        return Observation(Ending("finished"), Ending("raised" if failed else "finished", errors="RuntimeError: wrong"))

    def untestable(self, repro: Repro, settings: Settings | None = None) -> Untestable | None:
        """The table's."""
        return self.table.untestable

    def mismatch(self, repro: Repro, settings: Settings | None = None) -> Mismatch | None:
        """The one mismatch that there is."""
        return self.table.mismatch if self._kept("observe", repro, settings) else None

    def mismatch_in_fresh_process(self, repro: Repro, settings: Settings | None = None) -> Mismatch | None:
        """The same in a fresh process, as the pattern says."""
        return self.table.mismatch if self.table.run_once(self.environment.build, Question(repro, SIGNATURE)) else None

    def mismatch_in_plain_process(self, repro: Repro) -> Mismatch | None:
        """None that the other runs do not show."""
        return None

    def succeeds_in_eager(self, repro: Repro) -> bool:
        """Always: no script fails without ``torch.compile``."""
        return True

    def ask(self, question: Question) -> Verdict:
        """Answer from the table."""
        return _verdict(self._kept("ask", question.repro, question.settings))

    def ask_in_fresh_process(self, question: Question) -> Verdict:
        """The same, past the journal."""
        return _verdict(self.table.ask("confirm", self.environment.build, question.repro.source, question.settings))

    def ask_once(self, question: Question) -> Verdict:
        """Answer as the pattern says."""
        return _verdict(self.table.run_once(self.environment.build, question))

    def fresh_process_agrees(self, question: Question) -> bool:
        """The table's."""
        return self.table.fresh_agrees

    def ask_again(self, question: Question, number: int) -> Verdict:
        """Answer as the pattern says about the run of this number."""
        shown = self._kept("again", question.repro, question.settings)
        return _verdict(shown and self.table.pattern[(number - 1) % len(self.table.pattern)])

    def take_over(self, clone: object) -> None:
        """Do nothing: a table has no processes."""

    def prepare_fresh_process(self, repro: Repro) -> None:
        """Do nothing: a table has no processes."""

    def use_prepared_process(self) -> None:
        """Do nothing: a table has no processes."""

    def run_tool(self, name: str, repro: Repro) -> ToolAnswer:
        """Return one line for ``collect-env``, and no pass."""
        return ToolAnswer(f"PyTorch version: {self.environment.build}\n" if name == "collect-env" else None)

    def trace(self, repro: Repro) -> Trace:
        """An empty trace: nothing is known of any call."""
        return Trace((), ())

    def _kept(self, what: str, repro: Repro, settings: Settings | None) -> bool:
        """The journal's answer, or else the table's, which is kept."""
        settings = settings or Settings()
        key = fingerprint(what, self.environment.build.name, repro.source, asdict(settings))
        known = self.journal.get(key)
        if known is None:
            known = [self.table.ask(what, self.environment.build, repro.source, settings)]
            self.journal.put(key, known)
        return bool(known[0])


def _verdict(same: bool) -> Verdict:
    return Verdict(Answer.SAME if same else Answer.NONE)


@dataclass(frozen=True)
class TableEnvironments:
    """Leases environments, and counts the leases."""

    table: Table
    interpreter: Interpreter
    replaces_packages: bool = False

    def environment(self, build: Build) -> TableEnvironment:
        """Lease an environment, unless the table refuses the build."""
        self.table.ask("install", build)
        if build.name in self.table.refused:
            raise InstallFailed(self.table.refused[build.name], f"torch {build} can't be installed")
        self.table.leases[build.name] += 1
        return TableEnvironment(self.table, build)

    def prefetch(self, build: Build, cancel: threading.Event) -> None:
        """Do what the table says; nothing has to be fetched."""
        self.table.on_prefetch(build, cancel)

    def has(self, build: Build) -> bool:
        """From the first time on that it was asked for."""
        return build.name in self.table.leases

    def release(self, build: Build) -> None:
        """Take a lease back."""
        self.table.leases[build.name] -= 1


@dataclass
class TableSources:
    """The builds of the table. See ``provider.BuildSources``."""

    table: Table
    cache: Cache
    variant: str = "cpu"
    interpreter: Interpreter = field(
        default_factory=lambda: Interpreter(Path("python"), "3.11.7", "cp311", ("manylinux_2_28_x86_64",))
    )

    def __post_init__(self) -> None:
        self._maker = TableEnvironments(self.table, self.interpreter)

    @property
    def indexes(self) -> Any:
        """None: no test here needs one."""
        raise AssertionError("an index was asked for")

    @property
    def releases(self) -> Listing:
        """The releases of the table."""
        return self._listing(lambda build: build.channel is Channel.RELEASE)

    @property
    def listed_nightlies(self) -> Listing:
        """The nightlies of the table."""
        return self._listing(lambda build: build.channel is Channel.NIGHTLY)

    def nightlies_between(self, first: datetime.date, last: datetime.date) -> Listing:
        """The nightlies of these days."""
        return self._listing(lambda build: build.date is not None and first <= build.date <= last)

    def nightly(self, selector: Any) -> Build:
        """The nightly that was typed."""
        for build in self.listed_nightlies.builds:
            if selector.matches(build):
                return build
        raise InputError(f"there is no nightly {selector.text}")

    def maker(self, build: Build) -> Any:
        """One for all."""
        return self._maker

    def _listing(self, wanted: Callable[[Build], bool]) -> Listing:
        named = [build for build in map(build_of, self.table.wrong) if wanted(build)]
        variants = [self.table.variants.get(build.name, "").split() for build in named]
        builds = [_variant(build, own[0]) if own else build for build, own in zip(named, variants)]
        cuda = {build.version: _variant(build, own[1]) for build, own in zip(builds, variants) if len(own) > 1}
        return Listing(tuple(builds), cuda=cuda)


class TableProvider:
    """Gives a run the builds of the table and answers its questions. See ``provider.Provider``."""

    def __init__(self, table: Table, folder: Path, *, repeat: int = 1) -> None:
        self.table = table
        self.sources: Any = TableSources(table, Cache(folder))
        self.journal: Journal | None = None
        self.closed = False
        self._repeat = repeat

    @contextmanager
    def environment(self, build: Build) -> Iterator[Any]:
        """Lease the environment of a build."""
        maker = self.sources.maker(build)
        environment = maker.environment(build)
        try:
            yield environment
        finally:
            maker.release(build)

    def oracle(self, environment: Any, journal: Journal, notify: Callable[[str], None]) -> TableOracle:
        """Return an oracle that reads the table."""
        return TableOracle(self.table, environment, journal, self._repeat)

    @contextmanager
    def failing_oracle(self, build: Build, journal: Journal, notify: Callable[[str], None]) -> Iterator[TableOracle]:
        """Return an oracle for the build where the script fails."""
        with self.environment(build) as environment:
            yield self.oracle(environment, journal, notify)

    def collect_env(self, oracle: TableOracle) -> str | None:
        """Return one line."""
        return oracle.run_tool("collect-env", Repro("")).text

    def close(self) -> None:
        """Note that the run is over."""
        self.closed = True
