"""Runs of one suite on several builds, each kept in the journal."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from torchbisect.core.build import Build
from torchbisect.core.errors import InputError, MachineError
from torchbisect.core.printable import one_line
from torchbisect.core.repro import Files, fingerprint
from torchbisect.core.version import __version__
from torchbisect.pipeline.local_provider import LocalProvider
from torchbisect.pipeline.options import Options
from torchbisect.pipeline.progress import Display
from torchbisect.probe.journal import Journal
from torchbisect.probe.suite_run import TEST_SECONDS, SuiteRun, run_suite

_NO_TESTS, _USAGE = 5, 4


def pytest_arguments(command: str) -> list[str]:
    """Return the arguments of pytest in a command line. Raises ``InputError`` if it is no command of pytest's."""
    example = "write it as one word, such as 'pytest tests -q'"
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InputError(f"{command!r} can't be read ({error}): {example}") from error
    if words[:1] and words[0] in ("pytest", "py.test"):
        return words[1:]
    if len(words) > 2 and words[0].startswith("python") and words[1:3] == ["-m", "pytest"]:
        return words[3:]
    raise InputError(f"{command!r} is no command of pytest: {example}, and set variables in front of torchbisect")


@dataclass(frozen=True)
class SuiteRuns:
    """The runs of one suite.

    Attributes:
        command: as it was typed, for messages.
        words: the arguments of pytest.
        files: the copy of the user's files.
    """

    command: str
    words: Sequence[str]
    files: Files
    options: Options
    provider: LocalProvider
    journal: Journal
    display: Display

    def run(self, build: Build, role: str, only: Sequence[str] | None = None) -> SuiteRun:
        """Run the suite, or ``only`` some of its tests, on a build, unless the journal has the answer.

        Args:
            role: the reason of the run, in a few words: ``good``, ``bad again``.

        Raises:
            InputError: pytest refuses the command, or finds no test.
            MachineError: pytest did not start.
            InstallFailed: the build can't be installed here.
        """
        seconds = self.options.timeout or TEST_SECONDS
        key = fingerprint(
            *("suite", __version__, build.name, role, self.files.digest, self.options.scope, seconds),
            *(list(self.words), None if only is None else sorted(only)),
        )
        known = self.journal.get(key, SuiteRun.from_json)
        if known is None:
            with self.provider.environment(build) as environment:
                self.display.status(f"running the tests on torch {build}")
                known = run_suite(
                    environment, self.files, self.words, only=only, seconds=seconds, watch=self._shown(build)
                )
            if known is None:
                raise MachineError(f"pytest gave no answer on torch {build}: give the same command again")
            if not known.tests or known.status in (_USAGE, None):
                self._refuse(build, known)
            self.journal.put(key, asdict(known))
        return known

    def _shown(self, build: Build) -> Callable[[Callable[[], tuple[int, int]]], None]:
        def watch(count: Callable[[], tuple[int, int]]) -> None:
            def text() -> str:
                done, total = count()
                self.display.count(done, total or None)
                return f"running the tests on torch {build}: {done}" + (f" of {total}" if total else "")

            self.display.status(text)

        return watch

    def _refuse(self, build: Build, run: SuiteRun) -> None:
        """Raise the error of a run without a test."""
        lines = [line.strip() for line in run.said.splitlines() if line.strip()]
        said = next((line for line in reversed(lines) if line.startswith(("ERROR", "E  ", "ModuleNotFound"))), "")
        said = one_line(said or (lines[-1] if lines else "it said nothing"), 300)
        if any("No module named 'pytest'" in line or "No module named pytest" in line for line in lines):
            raise InputError(f"torch {build} has no pytest beside it: pip install pytest there")
        if run.errors:
            name, why = next(iter(run.errors.items()))
            more = f" and {len(run.errors) - 1} more files" if len(run.errors) > 1 else ""
            raise InputError(
                f"no test can be collected on torch {build}: {name}{more}: {one_line(why, 300)}; "
                "a package that is missing is named by --with"
            )
        if run.status == _NO_TESTS or not run.status:
            raise InputError(
                f"{self.command!r} collects no test on torch {build}: name the folder or file of the tests"
            )
        raise InputError(f"pytest refuses {self.command!r} on torch {build}: {said}")
