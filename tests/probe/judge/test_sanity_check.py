"""The sanity check: its backend, and a probe in an environment whose compiler is broken."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from torchbisect.containers.environment import Environment
from torchbisect.core.repro import Repro, Settings
from torchbisect.core.verdict import Answer
from torchbisect.probe.journal import Journal
from torchbisect.probe.judge.environment_faults import Untestable
from torchbisect.probe.judge.observation import Observation
from torchbisect.probe.judge.sanity_check import KNOWN_GOOD_SCRIPT, SanityChecks, sanity_backend
from torchbisect.probe.oracle import Question
from torchbisect.probe.probe import Probe

NAMES_NONE = "torch.compile(f)"
NAMES_EAGER = "torch.compile(f, backend='eager')"
NAMES_AOT = 'torch.compile(f, backend = "aot_eager")'
NAMES_ITS_OWN = "def mine(graph, inputs): return graph\ntorch.compile(f, backend=mine)"


@pytest.mark.parametrize(
    ("stage", "sources", "settings", "backend"),
    [
        ("dynamo", ["torch.compile(f)"], Settings(), "eager"),
        ("aot", [""], Settings(), "aot_eager"),
        ("inductor", [NAMES_EAGER], Settings(), "inductor"),
        ("inductor", [""], Settings(backend="aot_eager"), "aot_eager"),
        ("", [NAMES_EAGER], Settings(), "eager"),
        ("", ["torch._dynamo.optimize('eager')(f)"], Settings(), "eager"),
        ("", [NAMES_NONE], Settings(), "inductor"),
        ("", [NAMES_EAGER + NAMES_AOT], Settings(), "aot_eager"),
        ("", [NAMES_ITS_OWN], Settings(), "eager"),
        ("", [NAMES_ITS_OWN + NAMES_AOT], Settings(), "aot_eager"),
        ("", ["import model\nmodel.run()", NAMES_EAGER], Settings(), "eager"),
    ],
)
def test_the_backend_that_an_answer_depends_on(
    stage: str, sources: list[str], settings: Settings, backend: str
) -> None:
    assert sanity_backend(stage, sources, settings) == backend


def test_the_script_runs_once_for_each_backend_and_again_after_a_transient_failure(shown) -> None:
    asked: list[str | None] = []
    full = shown.compiled(shown.ends(shown.raised("OSError", "[Errno 28] No space left on device")))
    answers = [full, shown.compiled(shown.finished), full]

    def observe(repro: Repro, settings: Settings) -> Observation:
        assert repro.source == KNOWN_GOOD_SCRIPT
        asked.append(settings.backend)
        return answers[len(asked) - 1]

    checks = SanityChecks()
    first = checks.result("eager", observe)
    assert isinstance(first, Untestable)
    assert (first.reason, first.transient) == ("broken-environment", True)
    assert [checks.result("eager", observe), checks.result("eager", observe)] == [None, None]
    assert checks.result("inductor", observe) is not None
    assert asked == ["eager", "eager", "inductor"]


WRONG_COMPILER = """\
#!/bin/sh
for word in "$@"; do
    case "$word" in *.cpp) sed -i -E 's/\\((2|2\\.0)\\)/(3.0)/g' "$word" ;; esac
done
exec {compiler} "$@"
"""
TWICE = "import torch\ntorch.compile(lambda x: x.sin() * 2.0{backend})(torch.ones(3))\n"
WRONG_COUNT = """\
import collections, torch
def count(x):
    recent = collections.deque([1, 2, 3], maxlen=0)
    recent.append(4)
    return x * len(recent)
torch.compile(count, backend="eager")(torch.ones(2))
"""


@pytest.mark.long
@pytest.mark.torch
def test_wrong_numbers_of_a_broken_compiler_are_no_evidence(
    environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The C++ compiler runs, and makes every factor 2 a 3: the mismatch is one of values, as that of a real bug is."""
    compiler = tmp_path / "g++"
    compiler.write_text(WRONG_COMPILER.format(compiler=shutil.which("g++")))
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    with Probe(environment, Journal()) as probe:
        wrong, right = Repro(TWICE.format(backend="")), Repro(TWICE.format(backend=", backend='eager'"))
        observation = probe.observe(wrong)
        assert [str(difference.kind) for difference in observation.differences] == ["values"], observation
        untestable = probe.untestable(wrong)
        assert untestable is not None
        assert (untestable.reason, probe.mismatch(wrong)) == ("broken-environment", None)
        # Nothing that needs no C++ compiler is affected.
        found = probe.mismatch(Repro(WRONG_COUNT))
        assert found is not None
        assert probe.ask(Question(right, found.signature)).answer is Answer.NONE
        verdict = probe.ask(Question(wrong, found.signature))
        assert (verdict.answer, verdict.reason) == (Answer.UNTESTABLE, "broken-environment")
