"""A test of the user's own: its exit status is the verdict, as in git bisect run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from torchbisect.containers.builds import Build, Channel
from torchbisect.containers.commands import run_command
from torchbisect.containers.environments import Completed, Facts
from torchbisect.containers.errors import DiskFull
from torchbisect.probe.command import CommandProbe
from torchbisect.probe.journal import Journal
from torchbisect.probe.observation import Kind
from torchbisect.probe.verdict import Answer


class Here:
    """This Python as an environment; nothing of torch is needed to run a command."""

    build = Build("2.8.0", Channel.INSTALLED)
    facts = Facts("2.8.0+cpu", "abc", "3.11.7", "Linux")

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def start(self, arguments, extra=None):
        raise AssertionError("a command is run to its end")

    def run(self, arguments, *, timeout, directory=None, extra=None) -> Completed:
        variables = {"PATH": "/usr/bin:/bin", **(extra or {})}
        words = [sys.executable, "-S", *arguments]
        return run_command(words, environment=variables, directory=directory or self._folder, timeout=timeout)


@pytest.fixture
def test(tmp_path: Path):
    def make(command: str, *, journal: Journal | None = None, timeout: float = 30.0) -> CommandProbe:
        return CommandProbe(Here(tmp_path), journal or Journal(), command, timeout=timeout)

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
    bad = test("exit 3").mismatch()
    assert bad is not None
    assert bad.kind is Kind.COMMAND
    verdict = test(command).ask(bad.signature)
    assert (verdict.answer, verdict.reason) == (answer, reason)
    assert "\n" not in verdict.detail


def test_a_crash_that_was_looked_for_is_the_same_crash(test) -> None:
    crash = test("kill -SEGV $$").mismatch()
    assert crash is not None
    assert crash.summary == "the test crashes with SIGSEGV"
    assert test("exit 139").ask(crash.signature).answer is Answer.SAME
    assert test("exit 1").ask(crash.signature).answer is Answer.OTHER


def test_what_cannot_tell_is_no_mismatch(test) -> None:
    for command in ("exit 0", "exit 125", "no-such-command"):
        assert test(command).mismatch() is None


def test_a_test_without_end_is_ended(test) -> None:
    bad = test("exit 1").mismatch()
    verdict = test("while :; do :; done", timeout=0.3).ask(bad.signature)
    assert (verdict.answer, verdict.reason) == (Answer.UNTESTABLE, "timed-out")


def test_it_finds_what_it_is_told_of(test) -> None:
    wants = (
        '[ "$TORCHBISECT_TORCH_VERSION" = 2.8.0+cpu ] && [ -x "$TORCHBISECT_PYTHON" ] && [ -d "$TORCHBISECT_SCRATCH" ]'
    )
    assert test(wants).mismatch() is None
    assert test(f"{wants} && exit 7").mismatch() is not None


def test_it_is_run_once(test, tmp_path: Path) -> None:
    journal, counter = Journal(tmp_path / "journal.jsonl"), tmp_path / "runs"
    command = f"echo run >> {counter}; exit 1"
    first = test(command, journal=journal)
    bad = first.mismatch()
    assert first.ask(bad.signature).answer is Answer.SAME
    again = test(command, journal=Journal(tmp_path / "journal.jsonl"))
    assert again.ask(bad.signature).answer is Answer.SAME
    assert (counter.read_text().count("run"), first.asked, again.asked) == (1, 1, 0)


def test_a_full_disk_is_not_a_verdict(test) -> None:
    with pytest.raises(DiskFull):
        test("echo 'write: No space left on device' >&2; exit 1").mismatch()
