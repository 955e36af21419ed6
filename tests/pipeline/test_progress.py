"""The display of a run's progress is never silent for long, on a terminal and in a pipe."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
import time
from itertools import pairwise

import pytest

from torchbisect.pipeline.progress import Display, format_seconds

# A stage in which nothing is said for three seconds, and the work between two stages.
_SILENT = """
import time
from torchbisect.pipeline.progress import Display
display = Display()
with display.working():
    with display.stage("Minimize"):
        display.status("confirming under plain python", 1, 3)
        time.sleep(3)
    time.sleep(1)
"""


def test_silent_work_is_shown_in_a_pipe() -> None:
    stream = io.StringIO()
    display = Display(stream=stream, every=0.1)
    with display.working(), display.stage("Minimize"):
        display.status("120 bytes", 2, 6)
        time.sleep(0.5)
    lines = stream.getvalue().splitlines()
    assert lines[0] == "Minimize"
    assert len(lines) >= 4
    assert re.fullmatch(r"  … Minimize: 120 bytes \(\d s(, about \d s left)?\)", lines[1])


def test_a_stage_within_another_is_shown_and_then_the_outer_one() -> None:
    stream = io.StringIO()
    display = Display(stream=stream, every=0.05)
    with display.stage("Bisect"):
        with display.stage("Minimize again"):
            time.sleep(0.2)
        time.sleep(0.2)
    shown = stream.getvalue()
    assert shown.index("… Minimize again (") < shown.index("… Bisect (")


def test_the_present_status_is_asked_each_time() -> None:
    stream = io.StringIO()
    display = Display(stream=stream, every=0.05)
    numbers = iter(range(1000))
    with display.working("Triage"):
        display.status(lambda: f"step {next(numbers)}")
        time.sleep(0.3)
    assert "Triage: step 0" in stream.getvalue()
    assert "Triage: step 1" in stream.getvalue()


def test_the_first_silence_counts_from_the_start_of_the_process() -> None:
    script = """
import time
time.sleep(2)
from torchbisect.pipeline.progress import Display
with Display(every=2).working("Reading"):
    time.sleep(1)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "Reading" in done.stderr


def test_quiet_shows_no_progress_and_nothing_follows_the_end() -> None:
    quiet, stream = io.StringIO(), io.StringIO()
    with Display(-1, quiet, every=0.02).stage("Observe"):
        time.sleep(0.1)
    with Display(stream=stream, every=0.02).stage("Observe"):
        time.sleep(0.1)
    ended = stream.getvalue()
    time.sleep(0.1)
    assert (quiet.getvalue(), stream.getvalue()) == ("", ended)


@pytest.mark.slow
def test_a_terminal_is_written_to_every_second() -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", _SILENT], stderr=theirs, stdin=theirs, env={**os.environ, "TERM": "xterm"}
    )
    os.close(theirs)
    times, shown = [time.monotonic()], b""
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not data:
            break
        times.append(time.monotonic())
        shown += data
    os.close(ours)
    assert process.wait() == 0
    # The first piece waits for the start of Python.
    assert max(after - before for before, after in pairwise(times[1:])) < 1.5
    assert b"confirming under plain python (2 s, about 4 s left)" in shown


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (59.6, "1 min 0 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")]
)
def test_times_are_written_for_people(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text
