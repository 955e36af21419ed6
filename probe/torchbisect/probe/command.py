"""A test of the user's own in place of a comparison: a command whose exit status is the verdict, as in git bisect run.

It is for what no script in Python shows by itself: a C++ program built against a build's libtorch, a whole test suite,
a measurement. A shell runs it on the environment's side, and there it finds, beside what every process gets:

    TORCHBISECT_PYTHON          the environment's Python
    TORCHBISECT_TORCH_VERSION   the torch in it
    TORCHBISECT_SCRATCH         an empty folder of its own, also the current one where no other is given
    CMAKE_PREFIX_PATH           where CMake finds that torch: what ``torch.utils.cmake_prefix_path`` says
"""

from __future__ import annotations

import signal
import tempfile
import time
from dataclasses import asdict

from torchbisect.containers.environments import Completed, Environment
from torchbisect.containers.errors import DiskFull
from torchbisect.probe.journal import Journal
from torchbisect.probe.judging import Mismatch
from torchbisect.probe.matching import Strictness
from torchbisect.probe.observation import Kind
from torchbisect.probe.repro import fingerprint
from torchbisect.probe.signature import Signature
from torchbisect.probe.verdict import Answer, Verdict
from torchbisect.probe.version import __version__

SKIP = 125
_NOT_EXECUTABLE, _NOT_FOUND, _SIGNALLED = 126, 127, 128

# Finds torch without importing it: a command may be there for a torch that can't be imported.
_RUN = """\
import importlib.util, os, sys
found = importlib.util.find_spec("torch")
if found and found.origin:
    os.environ["CMAKE_PREFIX_PATH"] = os.path.join(os.path.dirname(found.origin), "share", "cmake")
os.environ["TORCHBISECT_PYTHON"] = sys.executable
os.chdir(sys.argv[2])
os.execvp("sh", ["sh", "-c", sys.argv[1]])
"""


class CommandProbe:
    """Asks the user's own test about environments, and keeps its answers.

    Attributes:
        asked: how often the command was run.

    Args:
        environment: whose torch is tested.
        journal: asked first.
        command: for ``sh -c``.
        directory: where it is run; an empty folder if left out.
        timeout: seconds until it is ended.
        scope: whatever else decides how it runs here, as in ``Probe``.
    """

    def __init__(
        self,
        environment: Environment,
        journal: Journal,
        command: str,
        *,
        directory: str | None = None,
        timeout: float = 1800.0,
        scope: str = "",
    ) -> None:
        self.environment = environment
        self.journal = journal
        self.command = command
        self.asked = 0
        self._directory = directory
        self._timeout = timeout
        self._scope = scope

    def mismatch(self) -> Mismatch | None:
        """What the test finds wrong here; ``None`` where it finds nothing or can't tell."""
        signature = _signature(self._run())
        if signature is None:
            return None
        words = _in_words(signature)
        return Mismatch(Kind.COMMAND, f"the test {words}", signature, attribute="exit status", compiled=words)

    def ask(self, signature: Signature) -> Verdict:
        """Whether the test finds here what it found where ``signature`` was taken.

        A crash and a test that merely fails are two things: where one was looked for and the other is found, the
        answer is ``other``.
        """
        done = self._run()
        found = _signature(done)
        if found is not None:
            same = signature.matches(found, Strictness.TOLERANT)
            answer = Answer.SAME if same else Answer.OTHER
            return Verdict(answer, None if same else "command", f"the test {_in_words(found)}", done.seconds)
        if done.status == 0:
            return Verdict(Answer.NONE, detail="the test is content", seconds=done.seconds)
        reason, detail = _trouble(done, self._timeout)
        return Verdict(Answer.UNTESTABLE, reason, detail, done.seconds)

    def _run(self) -> Completed:
        facts = self.environment.facts
        where = (self.environment.build.version, facts.torch, facts.git_version, facts.python, facts.platform)
        key = fingerprint(__version__, "command", self.command, self._directory, self._timeout, where, self._scope)
        kept = self.journal.get(key)
        if kept is not None:
            return Completed(**kept)
        self.asked += 1
        started = time.monotonic()
        try:
            done = self._run_in_scratch()
        except OSError as error:
            raise DiskFull(f"no scratch folder for the test: {error.strerror}") from error
        done = Completed(done.status, done.output[-4000:], done.errors[-4000:], time.monotonic() - started)
        if "No space left on device" in done.errors:
            raise DiskFull("no space left on the disk: free some, then give the same command again")
        self.journal.put(key, asdict(done))
        return done

    def _run_in_scratch(self) -> Completed:
        with tempfile.TemporaryDirectory(prefix="torchbisect-test-", ignore_cleanup_errors=True) as scratch:
            extra = {
                "TORCHBISECT_TORCH_VERSION": self.environment.facts.torch,
                "TORCHBISECT_SCRATCH": scratch,
                "TORCHINDUCTOR_CACHE_DIR": f"{scratch}/.inductor",
                "TRITON_CACHE_DIR": f"{scratch}/.triton",
            }
            words = ["-c", _RUN, self.command, self._directory or scratch]
            return self.environment.run(words, timeout=self._timeout, directory=scratch, extra=extra)


def _signature(done: Completed) -> Signature | None:
    """What a bad ending says; ``None`` for a good one and for those that say nothing."""
    status = done.status
    if status is None or status in (0, SKIP, _NOT_EXECUTABLE, _NOT_FOUND):
        return None
    if status < 0 or status > _SIGNALLED:
        number = -status if status < 0 else status - _SIGNALLED
        return Signature(Kind.COMMAND, exception=_signal_name(number), attribute="exit status", compiled="crash")
    return Signature(Kind.COMMAND, attribute="exit status", compiled="bad")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _in_words(signature: Signature) -> str:
    return f"crashes with {signature.exception}" if signature.exception else "fails"


def _trouble(done: Completed, timeout: float) -> tuple[str, str]:
    """Why a command says nothing: its named reason, and one line."""
    lines = [line for line in (done.errors or done.output).splitlines() if line.strip()]
    last = f": {lines[-1].strip()[:200]}" if lines else ""
    if done.status is None:
        return "timed-out", f"the test did not end within {timeout:.0f} s"
    if done.status == SKIP:
        return "skipped", f"the test says that it can't tell (status {SKIP}){last}"
    return "test-broken", f"the test could not be run (status {done.status}){last}"
