"""Cutting of error logs."""

from __future__ import annotations

import re
import traceback

from hypothesis import given
from hypothesis import strategies as st

from torchbisect.reports.render.error_logs import cut_log


def deep_traceback(depth: int) -> str:
    def fall(left: int) -> None:
        if left:
            (fall if left % 2 else lambda n: fall(n))(left - 1)
        else:
            raise ValueError("the bottom")

    try:
        fall(depth)
    except ValueError:
        return traceback.format_exc()
    raise AssertionError


def test_the_middle_of_a_traceback_is_removed() -> None:
    log = cut_log(f"start\n{deep_traceback(60)}", lines=100)
    assert log.startswith("start\nTraceback (most recent call last):")
    assert log.endswith("ValueError: the bottom")
    assert log.count("File ") <= 10
    assert re.search(r"\[… \d+ frames left out …\]", log)


def test_the_scripts_own_frames_stay() -> None:
    frames = [f'  File "/v/lib/python3.11/site-packages/torch/a{n}.py", line {n}, in f\n    g()' for n in range(30)]
    frames.insert(0, '  File "<torchbisect child>", line 9, in _run')
    frames.insert(15, '  File "/home/ann/repro.py", line 76, in factor\n    assert x')
    log = cut_log("\n".join(["Traceback (most recent call last):", *frames, "AssertionError"]), 100)
    assert 'File "…/repro.py", line 76, in factor\n    assert x' in log
    assert "torchbisect" not in log
    assert log.count("left out") == 2
    assert log.count("File ") == 8


def test_a_short_log_is_whole() -> None:
    log = deep_traceback(2).rstrip("\n")
    shown = cut_log(log)
    assert shown.count("File ") == log.count("File ")
    assert "left out" not in shown


def test_chained_errors_are_both_there() -> None:
    log = (
        deep_traceback(40)
        + "\nThe above exception was the direct cause of the following exception:\n\n"
        + (deep_traceback(40).replace("the bottom", "the top"))
    )
    shown = cut_log(log, 200)
    assert "ValueError: the bottom" in shown
    assert "direct cause" in shown
    assert shown.endswith("ValueError: the top")


def test_general_advice_of_torch_is_removed() -> None:
    log = (
        "RuntimeError: bad\n\nSet TORCHDYNAMO_VERBOSE=1 for the internal stack trace\n\n\n"
        "You can suppress this exception and fall back to eager by setting:\n    import torch._dynamo\n"
        "    torch._dynamo.config.suppress_errors = True\n"
    )
    assert cut_log(log) == "RuntimeError: bad"


@given(st.text(st.sampled_from("ab \n\x1b[]0m"), max_size=200) | st.text(max_size=100), st.integers(3, 12))
def test_it_stays_within_its_lines(log: str, lines: int) -> None:
    shown = cut_log(log, lines, width=20).split("\n")
    assert len(shown) <= lines
    assert all(len(line) <= max(20, len("[… 1000 lines left out …]")) for line in shown)


@given(st.lists(st.text("ab", min_size=1, max_size=5), min_size=1, max_size=60))
def test_the_last_line_always_stays(lines: list[str]) -> None:
    assert cut_log("\n".join(lines), 5).split("\n")[-1] == lines[-1]
