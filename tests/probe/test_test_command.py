"""A test of the user's own: its exit status is the verdict, as in git bisect run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from torchbisect.containers.environment import Facts
from torchbisect.containers.process.run_command import Completed, run_command
from torchbisect.core.build import Build, Channel
from torchbisect.core.errors import DiskFull
from torchbisect.core.repro import Repro
from torchbisect.core.verdict import Answer, MismatchKind
from torchbisect.probe.journal import Journal
from torchbisect.probe.judge.matching import Strictness
from torchbisect.probe.oracle import Question, times_shown
from torchbisect.probe.test_command import NO_SCRIPT, CommandProbe


class Here:
    """This Python as an environment; nothing of torch is needed to run a command."""

    local = True
    compiler_cache = None

    build = Build("2.8.0", Channel.INSTALLED)
    facts = Facts("2.8.0+cpu", "abc", "3.11.7", "Linux")

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def start(self, arguments, extra=None):
        raise AssertionError("a command is run to its end")

    def run(self, arguments, *, timeout, directory=None, extra=None, cancel=None) -> Completed:
        variables = {"PATH": "/usr/bin:/bin", **(extra or {})}
        words = [sys.executable, "-S", *arguments]
        return run_command(words, environment=variables, directory=directory or self._folder, timeout=timeout)


@pytest.fixture
def test(tmp_path: Path):
    def make(
        command: str,
        *,
        journal: Journal | None = None,
        timeout: float = 30.0,
        repeat: int = 1,
        directory: str | None = None,
    ) -> CommandProbe:
        return CommandProbe(
            Here(tmp_path), journal or Journal(), command, directory=directory, timeout=timeout, repeat=repeat
        )

    return make


@pytest.mark.parametrize(
    ("command", "answer", "reason"),
    [
        ("exit 0", Answer.NONE, None),
        ("exit 1", Answer.SAME, None),
        ("exit 124", Answer.SAME, None),
        ("exit 125", Answer.UNTESTABLE, "skipped"),
        ("exit 126", Answer.UNTESTABLE, "test-broken"),
        ("no-such-command", Answer.UNTESTABLE, "test-broken"),
        ("exit 139", Answer.OTHER, "command"),
        ("kill -SEGV $$", Answer.OTHER, "command"),
    ],
)
def test_the_status_is_the_verdict(test, command: str, answer: Answer, reason: str | None) -> None:
    bad = test("exit 3").mismatch(NO_SCRIPT)
    assert bad is not None
    assert bad.kind is MismatchKind.COMMAND
    assert bad.summary == "the test fails with exit status 3"
    verdict = test(command).ask(Question(NO_SCRIPT, bad.signature))
    assert (verdict.answer, verdict.reason) == (answer, reason)
    assert "\n" not in verdict.detail


def test_a_crash_matches_the_same_crash(test) -> None:
    crash = test("kill -SEGV $$").mismatch(NO_SCRIPT)
    assert crash is not None
    assert crash.summary == "the test crashes with SIGSEGV"
    assert test("exit 139").ask(Question(NO_SCRIPT, crash.signature)).answer is Answer.SAME
    assert test("exit 1").ask(Question(NO_SCRIPT, crash.signature)).answer is Answer.OTHER


def test_a_run_that_cannot_tell_is_no_mismatch(test) -> None:
    for command in ("exit 0", "exit 125", "no-such-command"):
        assert test(command).mismatch(NO_SCRIPT) is None


def test_a_test_is_ended_after_its_timeout(test) -> None:
    bad = test("exit 1").mismatch(NO_SCRIPT)
    verdict = test("while :; do :; done", timeout=0.3).ask(Question(NO_SCRIPT, bad.signature))
    assert (verdict.answer, verdict.reason) == (Answer.UNTESTABLE, "timed-out")


def test_the_command_finds_its_environment_variables(test) -> None:
    wants = (
        '[ "$TORCHBISECT_TORCH_VERSION" = 2.8.0+cpu ] && [ -x "$TORCHBISECT_PYTHON" ] && [ -d "$TORCHBISECT_SCRATCH" ]'
    )
    assert test(wants).mismatch(NO_SCRIPT) is None
    assert test(f"{wants} && exit 7").mismatch(NO_SCRIPT) is not None


def test_the_command_runs_once_for_each_question(test, tmp_path: Path) -> None:
    journal, counter = Journal(tmp_path / "journal.jsonl"), tmp_path / "runs"
    command = f"echo run >> {counter}; exit 1"
    first = test(command, journal=journal)
    bad = first.mismatch(NO_SCRIPT)
    assert first.ask(Question(NO_SCRIPT, bad.signature)).answer is Answer.SAME
    again = test(command, journal=Journal(tmp_path / "journal.jsonl"))
    assert again.ask(Question(NO_SCRIPT, bad.signature)).answer is Answer.SAME
    assert (counter.read_text().count("run"), first.asked, again.asked) == (1, 1, 0)


def test_a_full_disk_is_not_a_verdict(test) -> None:
    with pytest.raises(DiskFull):
        test("echo 'write: No space left on device' >&2; exit 1").mismatch(NO_SCRIPT)


ASSERTS = "import sys\nvalue = 2\nassert value == 1, 'wrong by one'\n"
RUN_IT = '"$TORCHBISECT_PYTHON" "$TORCHBISECT_SCRIPT"'


def test_the_script_is_written_for_the_command(test) -> None:
    found = test(RUN_IT).mismatch(Repro(ASSERTS))
    assert found is not None
    assert found.summary == "the test fails with exit status 1: AssertionError: wrong by one"
    assert test('python "$TORCHBISECT_SCRIPT"').mismatch(Repro("import sys\nsys.exit(0)\n")) is None
    named = test('test "$(basename "$TORCHBISECT_SCRIPT")" = train.py')
    assert named.mismatch(Repro("pass\n", name="train.py")) is None
    assert test('test -z "$TORCHBISECT_SCRIPT"').mismatch(NO_SCRIPT) is None


def test_a_shrunk_script_with_another_exception_is_other(test) -> None:
    probe = test(RUN_IT)
    found = probe.mismatch(Repro(ASSERTS))
    shorter = "value = 3\nassert value == 1, 'wrong by one'\n"
    assert probe.ask(Question(Repro(shorter), found.signature, strictness=Strictness.STRICT)).answer is Answer.SAME
    broken = "assert value == 1, 'wrong by one'\n"
    assert probe.ask(Question(Repro(broken), found.signature, strictness=Strictness.STRICT)).answer is Answer.OTHER
    # Over builds the status alone decides, as in git bisect run.
    assert probe.ask(Question(Repro(broken), found.signature, strictness=Strictness.TOLERANT)).answer is Answer.SAME


def test_a_script_imports_the_modules_beside_it(test, tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("answer = 42\n")
    repro = Repro("from beside import answer\nassert answer == 42\n", directory=str(tmp_path))
    assert test(RUN_IT).mismatch(repro) is None


def test_a_changed_test_is_another_question(test, tmp_path: Path) -> None:
    script, journal = tmp_path / "check.sh", Journal()
    script.write_text("exit 0\n")
    probe = test("sh check.sh", journal=journal, directory=str(tmp_path))
    assert probe.mismatch(NO_SCRIPT) is None
    script.write_text("exit 1\n")
    assert probe.mismatch(NO_SCRIPT) is not None
    assert probe.asked == 2


def test_runs_that_disagree_are_flaky(test, tmp_path: Path) -> None:
    bad = test("exit 1").mismatch(NO_SCRIPT)
    seldom = test(f"echo run >> {tmp_path}/runs; test $(wc -l < {tmp_path}/runs) -eq 2", repeat=3)
    verdict = seldom.ask(Question(NO_SCRIPT, bad.signature))
    assert (verdict.answer, verdict.reason) == (Answer.UNTESTABLE, "flaky")
    assert times_shown(seldom, Question(NO_SCRIPT, bad.signature), 2) == 1


def test_a_fresh_process_runs_the_command_once_more(test) -> None:
    probe = test("exit 1")
    bad = probe.mismatch(NO_SCRIPT)
    assert probe.ask_in_fresh_process(Question(NO_SCRIPT, bad.signature)).same
    assert probe.asked == 2
