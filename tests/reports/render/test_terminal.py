"""The summary on a terminal."""

from __future__ import annotations

import io
import unicodedata
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from torchbisect.reports.model.report import Report
from torchbisect.reports.render.terminal import summary

#: Whole reports are slow to generate.
FEW = settings(max_examples=settings.default.max_examples // 4)


def shown(report: Report, files: tuple[Path, ...] = (), width: int = 120) -> str:
    stream = io.StringIO()
    Console(file=stream, width=width, color_system=None, soft_wrap=True).print(summary(report, files))
    return stream.getvalue()


def test_a_whole_run(whole: Report) -> None:
    text = shown(whole, (Path("out/report.md"),))
    assert text.startswith("mismatch      compiled gives requires_grad=False where eager gives True")
    assert "first shown by eager; likely component: module: dynamo" in text
    assert "Already bad in 2.2.2" in text
    assert "2.9.1 (first fixed)" in text
    assert "12 lines, 224 bytes (from 143 lines, 5312 bytes)" in text
    assert '@torch.compile(backend="eager")' in text
    assert "out/report.md" in text
    assert "2.8.0: exit 1; 2.13.0: exit 0" in text


def test_a_run_without_a_mismatch(whole: Report) -> None:
    report = replace(whole, verdict="none", mismatch=None, localization=None, minimal=None, bisect=None)
    assert shown(report).split() == ["no", "mismatch", "torch", "2.8.0+cpu"]


def test_a_run_that_was_interrupted_before_its_first_verdict(whole: Report) -> None:
    empty = replace(whole, mismatch=None, localization=None, minimal=None, bisect=None, environment=None)
    report = replace(empty, state="interrupted", verdict="untestable", reason="not observed yet")
    text = shown(report)
    assert text.startswith("interrupted   not observed yet")
    assert "untestable" not in text


def test_the_script_can_be_copied_from_a_narrow_terminal(whole: Report) -> None:
    assert whole.minimal is not None
    long = "x = " + " + ".join(["torch.ones(3)"] * 30)
    source = f"import torch\n\n\ndef f(x):\n    {long}   \n    return x\n"
    text = shown(replace(whole, minimal=replace(whole.minimal, source=source)), width=40)
    assert source.replace("   \n", "\n") in text
    assert not any(line.endswith(" ") for line in text.splitlines())


def test_an_interrupted_run_says_what_to_do(whole: Report) -> None:
    assert "the same command continues" in shown(replace(whole, state="interrupted"))


@given(st.from_type(Report), st.sampled_from([20, 80, 200]))
@FEW
def test_no_report_writes_control_characters(report: Report, width: int) -> None:
    text = shown(report, (Path("out/a\x1b[2Jb"),), width)
    assert all(c == "\n" or unicodedata.category(c)[0] != "C" for c in text)
