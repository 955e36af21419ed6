"""Sample reports: one of a whole run, and a strategy for arbitrary ones."""

from __future__ import annotations

import functools
import typing
from dataclasses import fields, is_dataclass
from typing import Any, Literal, get_args, get_origin

import pytest
from hypothesis import strategies as st

from torchbisect.reports.model import report as shapes
from torchbisect.reports.model.report import Report
from torchbisect.reports.model.search_results import (
    BisectReport,
    BuildFacts,
    BuildVerdict,
    CommitProof,
    Fix,
    Regression,
    SkippedBuild,
    SuspectCommit,
)

HOSTILE = (
    "plain words",
    "requires_grad: True -> False",
    "",
    "```\n### Versions\n```",
    "`````",
    "@octocat and @pytorch/compiler-devs",
    "fixes #1, GH-2 and pytorch/pytorch#3",
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "</details></summary><!-- torchbisect:report -->",
    "--> <!--",
    "![pixel](https://evil.example/p.png) [link](javascript:alert(1))",
    "https://evil.example/x www.evil.example ftp://evil.example",
    "| a | b |\n|---|---|\n| c | d |",
    "\x1b[2J\x1b]0;title\x07\x1b[31mred",
    "safe\u202egnp.exe\u202c\u200b\u2066x\u2069",
    "\x00\x07\x08\r\n\x0b\u2028\u2029\ud800\U000e0041",
    "1. one\n2. two\n- three\n# four\n> five\n    six\n---\n===",
    "&lt;b&gt; &#64;octocat &amp;",
    "{{ 7 * 7 }}{% raw %}[bold]x[/bold]",
    ":smile: $x^2$ *a* _b_ ~~c~~ __d__",
    "/home/somebody/secret/project/repro.py",
    'File "/opt/python/lib/python3.11/site-packages/torch/_dynamo/x.py", line 3, in f',
    "a" * 5000,
    "\\" * 7 + "`|" * 9,
)


@st.composite
def hostile(draw: st.DrawFn) -> str:
    """Any text, mostly one that attacks a renderer."""
    return draw(st.sampled_from(HOSTILE) | st.text(st.characters(), max_size=30))


texts = hostile()


@functools.cache
def values(hint: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for a field's type; texts are hostile."""
    if hint is Any:
        return st.none() | st.integers() | st.floats() | texts | st.lists(st.integers(), max_size=3)
    if is_dataclass(hint):
        hints = typing.get_type_hints(hint)
        wanted = {field.name: values(hints[field.name]) for field in fields(hint) if field.name != "schema"}

        @st.composite
        def built(draw: st.DrawFn) -> Any:
            return hint(**{name: draw(value) for name, value in wanted.items()})

        return built()
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is tuple:
        return st.lists(values(arguments[0]), max_size=3).map(tuple)
    if origin is dict:
        return st.dictionaries(texts, values(arguments[1]), max_size=3)
    if arguments:
        (inner,) = [argument for argument in arguments if argument is not type(None)]
        return st.none() | values(inner)
    return {str: texts, int: st.integers(), float: st.floats(), bool: st.booleans()}[hint]


# Tests use ``st.from_type(Report)``: without packages, test files cannot import from one another.
st.register_type_strategy(Report, values(Report))


MINIMAL = """import torch


@torch.compile(backend="eager")
def f(x):
    y = torch.zeros(1, 1, 1)
    y[:, [0], [0]] = x
    return y


out = f(torch.ones(1, requires_grad=True))
assert out.requires_grad, "eager: True, compiled: False"
"""

_LOCALIZATION = shapes.LocalizationReport(
    backend="eager",
    component="module: dynamo",
    settings={"backend": "eager"},
    fixed_by=("torch._dynamo.config.disable = True",),
    table=(
        shapes.AblationRow("eager", "", "same", seconds=0.2),
        shapes.AblationRow("aot_eager", "", "same", seconds=0.3),
        shapes.AblationRow("inductor", "", "same", seconds=2.5),
        shapes.AblationRow("inductor", "dynamic=True", "untestable", "timed-out", 60.0),
    ),
)

_MINIMAL_SCRIPT = shapes.MinimalScript(
    path="minimal.py",
    bytes=len(MINIMAL),
    lines=12,
    nodes=61,
    original=shapes.ScriptSize(5312, 143, 902),
    candidates=87,
    seconds=21.5,
    source=MINIMAL,
    confirmed=(
        shapes.Confirmation("2.8.0", 1, "AssertionError: eager: True, compiled: False", 3.1),
        shapes.Confirmation("2.13.0", 0, "", 3.0),
    ),
    trajectory=(
        shapes.ReductionStep(0, 0.0, 5312, 902),
        shapes.ReductionStep(10, 2.0, 1200, 300),
        shapes.ReductionStep(80, 20.0, len(MINIMAL), 61),
    ),
    stands_alone=True,
)

_BISECT = BisectReport(
    regression=Regression(None, "2.2.2", words="already bad in the oldest build"),
    fix=Fix(
        "2.8.0",
        "2.9.1",
        between=("2.9.0",),
        skipped=(SkippedBuild("2.9.0", "import-failed"),),
        compare="https://github.com/pytorch/pytorch/compare/v2.8.0...v2.9.1",
        suspects=(SuspectCommit("c" * 40, "Trace setitem in a tensor (#161036)", None, ("touches torch/_dynamo",)),),
        proofs=(
            CommitProof("c" * 40, "2.8.0", reverted=False, passes=True),
            CommitProof("c" * 40, "2.2.2", reverted=False, reason="it does not apply here"),
        ),
    ),
    tested=(
        BuildVerdict("2.8.0", "bad", None, 40.0),
        BuildVerdict("2.13.0", "good", None, 44.0),
        BuildVerdict("2.2.2", "bad", None, 61.0),
        BuildVerdict("2.10.0", "good", None, 30.0),
        BuildVerdict("2.9.1", "good", None, 30.0),
        BuildVerdict("2.9.0", "untestable", "import-failed", 12.0),
    ),
    notices=("2.9.0 could not be imported",),
    left_out=(SkippedBuild("2.0.0", "no wheel for this Python"),),
    listed=("2.2.2", "2.5.1", "2.8.0", "2.9.0", "2.9.1", "2.10.0", "2.13.0"),
)


@pytest.fixture
def whole() -> Report:
    """A report of a run in which every part finished."""
    return Report(
        state="complete",
        verdict="mismatch",
        environment=shapes.EnvironmentReport(
            torch="2.8.0+cpu",
            git_version="ba56102387ef21a3b04b357e5b183d48f0afefc7",
            python="3.11.7",
            platform="Linux-6.1.0-x86_64-with-glibc2.36",
            triton="3.4.0",
            collect_env="Collecting environment information...\nPyTorch version: 2.8.0+cpu\nIs debug build: False\n",
        ),
        command="torchbisect run covariance_head.py --torch 2.8.0",
        original=shapes.OriginalScript("covariance_head.py", 5312, 143, 902, "import torch\n"),
        mismatch=shapes.MismatchReport(
            kind="metadata",
            summary="compiled gives requires_grad=False where eager gives True (output of call 0)",
            signature={"kind": "metadata", "attribute": "requires_grad"},
            fingerprint="4d0a81f0c2b94f7ea2a1b3c5",
            place="call 0 output",
            attribute="requires_grad",
            eager="True",
            compiled="False",
            runs=5,
            shown=5,
        ),
        localization=_LOCALIZATION,
        minimal=_MINIMAL_SCRIPT,
        conditions=(
            shapes.Condition("x needs requires_grad=True", True, 12, 0),
            shapes.Condition("any float dtype", False, 4, 4),
        ),
        bisect=_BISECT,
        builds={
            "2.8.0": BuildFacts("2.8.0+cpu", commit="ba56102387ef21a3b04b357e5b183d48f0afefc7", triton="3.4.0"),
            "2.9.1": BuildFacts("2.9.1", date="2025-11-12", triton="3.5.1"),
        },
        logs=shapes.Logs(eager="", compiled='Traceback (most recent call last):\n  File "/w/minimal.py", line 12\n'),
        versions={"torchbisect": "0.1.0"},
        started="2026-11-21T20:00:00+00:00",
        seconds=312.5,
    )
