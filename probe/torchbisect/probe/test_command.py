"""A test of the user: a command whose exit status is the verdict, as in ``git bisect run``.

It is for bugs that no Python script shows by itself: a C++ program built against a build's libtorch, a test suite, a
measurement. A shell runs it on the environment's side, and there it finds, beside what every process gets:

    TORCHBISECT_PYTHON          the environment's Python; it is also the first ``python`` on the path
    TORCHBISECT_TORCH_VERSION   the torch in it
    TORCHBISECT_SCRATCH         an empty folder of its own, also the current one where no other is given
    TORCHBISECT_SCRIPT          the script that is asked about, where there is one
    CMAKE_PREFIX_PATH           where CMake finds that torch: what ``torch.utils.cmake_prefix_path`` says

On this machine it runs in the user's own folder. A container gets a copy, and nothing that is written there comes back.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import signal
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path

from torchbisect.containers.environment import Environment
from torchbisect.containers.process.run_command import Completed
from torchbisect.containers.store.run_folder import temporary_folder
from torchbisect.core.decode import decode
from torchbisect.core.errors import DiskFull, InputError
from torchbisect.core.folders import MOST_DEPTH, walk_folder
from torchbisect.core.repro import Repro, Settings, fingerprint
from torchbisect.core.verdict import Answer, MismatchKind, Verdict
from torchbisect.core.version import __version__
from torchbisect.probe.journal import Journal
from torchbisect.probe.judge.classify import Mismatch
from torchbisect.probe.judge.environment_faults import Untestable
from torchbisect.probe.judge.failing_statement import bound_names
from torchbisect.probe.judge.matching import matches
from torchbisect.probe.judge.normalize import normalize
from torchbisect.probe.judge.observation import Ending, How, Observation
from torchbisect.probe.judge.signature import Signature
from torchbisect.probe.module_sources import siblings_digest, write_siblings
from torchbisect.probe.oracle import Question
from torchbisect.probe.separate_runs import DEFAULT_TIMEOUT, SeparateRuns
from torchbisect.probe.standalone_run import check_disk, last_words

SKIP = 125
"""The exit status of a command that can't tell, as in ``git bisect run``."""
NO_SCRIPT = Repro("", name="")
"""The repro of a test that needs no script."""

_NOT_EXECUTABLE, _NOT_FOUND, _SIGNALLED = 126, 127, 128
_KEPT_OUTPUT = 4000
# A file that the command names is part of the question, unless it is so large that it must be data.
_LARGEST_NAMED = 1 << 20
_PYTHON_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Failed|Unsupported|Interrupt|Exit|Warning)(?::|\Z)")

# Finds torch without importing it: a command may be there for a torch that can't be imported.
_RUN = """\
import importlib.util, os, sys
found = importlib.util.find_spec("torch")
if found and found.origin:
    os.environ["CMAKE_PREFIX_PATH"] = os.path.join(os.path.dirname(found.origin), "share", "cmake")
os.environ["TORCHBISECT_PYTHON"] = sys.executable
os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ.get("PATH", os.defpath)
os.chdir(sys.argv[2])
os.execvp("sh", ["sh", "-c", sys.argv[1]])
"""


class CommandProbe(SeparateRuns):
    """Answers questions about one environment by the user's own test. See ``oracle.Oracle``.

    Settings are not part of a test's question: it compiles as it likes. ``asked`` counts the runs of the command.

    Args:
        command: for ``sh -c``.
        directory: the working directory; an empty folder if left out.
        timeout: seconds after which it is ended; half an hour if left out.
        repeat: the number of runs behind each answer; runs that disagree are ``untestable``, reason ``flaky``.
        scope: whatever else decides how it runs here, as in ``Probe``.
    """

    compares_eager = False  # The test compiles what it likes; settings do not reach it.
    runs_are_cheap = False  # A test may take half an hour.
    subject = "the test"
    pass_summary = "the test passes"
    activity = ""

    def __init__(
        self,
        environment: Environment,
        journal: Journal,
        command: str,
        *,
        directory: str | None = None,
        timeout: float | None = None,
        repeat: int = 1,
        scope: str = "",
    ) -> None:
        super().__init__(environment)
        self.journal = journal
        self.command = command
        self.repeat = max(1, repeat)
        self.asked = 0
        self._directory = directory
        self._timeout = timeout or DEFAULT_TIMEOUT
        self._scope = scope

    def __enter__(self) -> CommandProbe:
        return self

    def clone(self) -> CommandProbe:
        """Return another one with the same journal, for another thread."""
        return CommandProbe(
            self.environment,
            self.journal,
            self.command,
            directory=self._directory,
            timeout=self._timeout,
            repeat=self.repeat,
            scope=self._scope,
        )

    def run(self, repro: Repro) -> Completed:
        """Return how the test ended; it is run if the journal does not have it."""
        return self._run(repro, 0)

    def observe(self, repro: Repro, settings: Settings | None = None) -> Observation:
        """Return the run of the test as the compiled one; there is no eager run beside it."""
        done = self.run(repro)
        how: How = "timed-out" if done.status is None else "exited"
        ending = Ending(how, status=done.status, seconds=done.seconds, output=done.output, errors=done.errors)
        return Observation(Ending("not-run"), ending)

    def mismatch(self, repro: Repro, settings: Settings | None = None) -> Mismatch | None:
        """Return the mismatch that the test finds; ``None`` if it finds nothing or can't tell."""
        return self._mismatch_of(self.run(repro), repro)

    def _mismatch_of(self, done: Completed, repro: Repro) -> Mismatch | None:
        signature = _signature(done, repro)
        if signature is None:
            return None
        words = _failure_text(signature, done)
        return Mismatch(MismatchKind.COMMAND, f"the test {words}", signature, attribute="exit status", compiled=words)

    def succeeds_in_eager(self, repro: Repro) -> bool:
        """Return ``False``: only the test knows what a script has to do."""
        return False

    def untestable(self, repro: Repro, settings: Settings | None = None) -> Untestable | None:
        """Return the reason why the test can't tell; ``None`` if it can."""
        done = self.run(repro)
        if done.status == 0 or _signature(done, repro) is not None:
            return None
        return Untestable(*_untestable_reason(done, self._timeout))

    def ask(self, question: Question) -> Verdict:
        """Answer whether the test finds the failure that the question's signature was taken from.

        A crash and a test that merely fails are different failures: one instead of the other is ``other``. While a
        script is shrunk (``STRICT``), another Python exception is ``other`` too, because a script that lost a name
        fails every test.
        """
        verdict = self._judged(self.run(question.repro), question)
        shown = [verdict.answer]
        for number in range(1, self.repeat):
            again = self.ask_again(question, number)
            shown.append(again.answer)
            if again.answer is not verdict.answer:
                words = f"shown in {sum(answer is Answer.SAME for answer in shown)} of {len(shown)} runs"
                return Verdict(Answer.UNTESTABLE, "flaky", words, again.seconds)
        return verdict

    def ask_in_fresh_process(self, question: Question) -> Verdict:
        """Answer a question by one more run of the test, never from the journal."""
        return self._judged(self.execute(question.repro), question)

    def mismatch_in_fresh_process(self, repro: Repro, settings: Settings | None = None) -> Mismatch | None:
        """Return what one more run of the test finds wrong."""
        return self._mismatch_of(self.execute(repro), repro)

    def ask_once(self, question: Question) -> Verdict:
        """Answer a question by one more run of the test; no two runs share anything."""
        return self.ask_in_fresh_process(question)

    def ask_again(self, question: Question, number: int) -> Verdict:
        """Answer a question by the test's further run of this number; from the journal if that was made before."""
        return self._judged(self._run(question.repro, number), question)

    def _judged(self, done: Completed, question: Question) -> Verdict:
        found = _signature(done, question.repro)
        if found is not None:
            same = matches(question.signature, found, question.strictness)
            answer = Answer.SAME if same else Answer.OTHER
            return Verdict(answer, None if same else "command", f"the test {_failure_text(found, done)}", done.seconds)
        if done.status == 0:
            return Verdict(Answer.NONE, detail=self.pass_summary, seconds=done.seconds)
        return Verdict(Answer.UNTESTABLE, *_untestable_reason(done, self._timeout), done.seconds)

    def _run(self, repro: Repro, number: int) -> Completed:
        """Return the run of this number; from the journal if it was made before."""
        facts = self.environment.facts
        where = (self.environment.build.version, facts.torch, facts.git_version, facts.python, facts.platform)
        what = (self.command, self._directory, named_files(self.command, self._directory), self._timeout, self._scope)
        script = (repro.source, repro.name, siblings_digest(repro.source, repro.directory))
        key = fingerprint(__version__, "command", what, where, script, number)
        kept = self.journal.get(key, partial(decode, Completed))
        if kept is not None:
            return kept
        done = self.execute(repro)
        self.journal.put(key, asdict(done))
        return done

    def execute(self, repro: Repro) -> Completed:
        """Run the test once more, whatever the journal has."""
        self.asked += 1
        started = time.monotonic()
        try:
            done = self._run_in_scratch(repro)
        except OSError as error:
            raise DiskFull(f"no scratch folder for the test: {error.strerror}") from error
        done = Completed(
            done.status, done.output[-_KEPT_OUTPUT:], done.errors[-_KEPT_OUTPUT:], time.monotonic() - started
        )
        check_disk(done)
        return done

    def _run_in_scratch(self, repro: Repro) -> Completed:
        with temporary_folder("test") as scratch:
            extra = {
                "TORCHBISECT_TORCH_VERSION": self.environment.facts.torch,
                "TORCHBISECT_SCRATCH": scratch,
                "TORCHINDUCTOR_CACHE_DIR": f"{scratch}/.inductor",
                "TRITON_CACHE_DIR": f"{scratch}/.triton",
            }
            if repro.source:
                path = Path(scratch, ".script", repro.name)
                path.parent.mkdir()
                path.write_text(repro.source, encoding="utf-8", errors="surrogatepass")
                extra["TORCHBISECT_SCRIPT"] = str(path)
                if self.environment.local and repro.directory:
                    # A candidate does not lie beside the modules that it imports.
                    extra["PYTHONPATH"] = repro.directory
                elif repro.directory:
                    write_siblings(repro, path.parent)
            words = ["-c", _RUN, self.command, self._folder(scratch)]
            return self.environment.run(words, timeout=self._timeout, directory=scratch, extra=extra)

    def _folder(self, scratch: str) -> str:
        """Return the working directory: the user's folder, or a copy of it in a container that can't see it."""
        if self._directory is None or self.environment.local:
            return self._directory or scratch
        copy = Path(scratch, ".folder")
        copy_folder(Path(self._directory), copy)
        return str(copy)


#: It is copied for each run, into memory.
LARGEST_FOLDER = 256 << 20
_LEFT_BEHIND = frozenset({".git", "__pycache__"})


def copy_folder(source: Path, target: Path) -> None:
    """Copy a folder for a container, without links, special files and git's own folder.

    Raises ``InputError`` above ``LARGEST_FOLDER`` bytes or for an unreadable file, ``OSError`` if there is no room.
    """
    size = 0
    for folder, folders, files in walk_folder(source):
        left = _left_behind(folder, folders + files)
        folders[:] = [name for name in folders if name not in left]
        size += sum(os.lstat(os.path.join(folder, name)).st_size for name in files if name not in left)
        if size > LARGEST_FOLDER:
            raise InputError(
                f"{source} holds more than {LARGEST_FOLDER >> 20} MB, and each run of --test takes a copy of it into a "
                "container: start torchbisect in a folder with only what the test needs"
            )
    try:
        shutil.copytree(source, target, ignore=partial(_left_behind, top=str(source)))
    except shutil.Error as error:
        _, _, why = error.args[0][0]
        raise InputError(f"{source} can't be copied for a container ({why}): make that file readable") from error


def _left_behind(folder: str, names: list[str], top: str = "") -> set[str]:
    if top and len(Path(folder).parts) - len(Path(top).parts) >= MOST_DEPTH:
        return set(names)
    return {name for name in names if name in _LEFT_BEHIND or not _copied(os.path.join(folder, name))}


def _copied(path: str) -> bool:
    return not os.path.islink(path) and (os.path.isfile(path) or os.path.isdir(path))


def named_files(command: str, directory: str | None) -> list[str]:
    """Return digests of the files that a command names, because a changed test is another test."""
    try:
        words = shlex.split(command)
    except ValueError:
        return []
    found = []
    for word in words:
        path = Path(directory or "/", word)
        try:
            if path.is_file() and path.stat().st_size <= _LARGEST_NAMED:
                found.append(hashlib.sha256(path.read_bytes()).hexdigest())
        except (OSError, ValueError):
            continue
    return found


def _signature(done: Completed, repro: Repro) -> Signature | None:
    """Return the signature of a failed run; ``None`` for a good one and for one that is no evidence."""
    status = done.status
    if status is None or status in (0, SKIP, _NOT_EXECUTABLE, _NOT_FOUND):
        return None
    if status < 0 or status > _SIGNALLED:
        number = -status if status < 0 else status - _SIGNALLED
        return Signature(
            MismatchKind.COMMAND, exception=_signal_name(number), attribute="exit status", compiled="crash"
        )
    last = last_words(done.errors)
    message = normalize(last, bound_names(repro.source)) if _PYTHON_EXCEPTION.match(last) else ""
    return Signature(MismatchKind.COMMAND, message=message, attribute="exit status", compiled="bad")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _failure_text(signature: Signature, done: Completed) -> str:
    if signature.exception:
        return f"crashes with {signature.exception}"
    last = _last_line(done)
    return f"fails with exit status {done.status}" + (f": {last}" if last else "")


def _last_line(done: Completed) -> str:
    return (last_words(done.errors) or last_words(done.output))[:200]


def _untestable_reason(done: Completed, timeout: float) -> tuple[str, str]:
    """Return the named reason why a run is no evidence, and one line about it."""
    last = _last_line(done)
    said = f": {last}" if last else ""
    if done.status is None:
        return "timed-out", f"the test did not end within {timeout:.0f} s"
    if done.status == SKIP:
        return "skipped", f"the test says that it can't tell (status {SKIP}){said}"
    return "test-broken", f"the test could not be run (status {done.status}){said}"
