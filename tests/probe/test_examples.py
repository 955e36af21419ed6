"""The scripts in ``examples/``, each for a system that this tool was asked to serve, under the probe."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from torchbisect.containers.environment import Environment
from torchbisect.core.repro import Repro, Settings
from torchbisect.core.verdict import Answer, MismatchKind
from torchbisect.probe.journal import Journal
from torchbisect.probe.judge.signature import Signature
from torchbisect.probe.judge.slowness import Bounds
from torchbisect.probe.oracle import Question
from torchbisect.probe.probe import Probe
from torchbisect.probe.test_command import NO_SCRIPT, CommandProbe

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FORMS = [
    ("sliced_assignment.py", "assignment", "aot_eager"),
    ("sliced_assignment.py", "index_put", "aot_eager"),
    ("higher_order_derivatives.py", "grad_of_grad", None),
    ("higher_order_derivatives.py", "hessian", None),
    ("higher_order_derivatives.py", "laplacian", None),
    ("compiled_autograd.py", "flag", None),
    ("compiled_autograd.py", "context", None),
    ("compiled_autograd.py", "hooks", None),
    ("compiled_autograd.py", "graph_break", None),
    ("compiled_autograd.py", "changing_graph", None),
    ("compiled_autograd.py", "changing_shapes", None),
]


def example(name: str, form: str) -> Repro:
    return Repro((EXAMPLES / name).read_text(encoding="utf-8"), (form,), name=name)


@pytest.mark.torch
@pytest.mark.parametrize(("name", "form", "backend"), FORMS)
def test_right_scripts_show_no_mismatch(probe: Probe, name: str, form: str, backend: str | None) -> None:
    repro, settings = example(name, form), Settings(backend=backend)
    observation = probe.observe(repro, settings)
    assert probe.untestable(repro, settings) is None
    assert probe.mismatch(repro, settings) is None
    assert observation.compiled.graphs > 0


@pytest.mark.torch
def test_graph_breaks_and_recompiles_exceed_their_bounds(probe: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    repro = example("compiled_autograd.py", "graph_break")
    monkeypatch.setattr(probe, "options", replace(probe.options, bounds=Bounds(graph_breaks=0)))
    found = probe.mismatch(repro)
    assert found is not None
    assert (found.kind, found.attribute) == (MismatchKind.SLOW, "graph breaks")
    assert probe.ask(Question(repro, found.signature)).answer is Answer.SAME
    straight = example("higher_order_derivatives.py", "grad_of_grad")
    assert probe.ask(Question(straight, found.signature)).answer is Answer.NONE
    monkeypatch.setattr(probe, "options", replace(probe.options, bounds=Bounds(recompiles=0)))
    found = probe.mismatch(example("compiled_autograd.py", "changing_shapes"))
    assert found is not None
    assert found.attribute == "recompiles"
    assert probe.ask(Question(straight, found.signature)).answer is Answer.NONE


@pytest.mark.long
@pytest.mark.skipif(shutil.which("cmake") is None, reason="the C++ example is built by CMake, which is not installed")
def test_a_program_in_cpp_is_tested_against_the_builds_own_libtorch(environment: Environment, tmp_path: Path) -> None:
    """Both tests share one build: compiling against libtorch takes most of a minute."""
    test = f"TORCHBISECT_SCRATCH={tmp_path} sh {EXAMPLES / 'cpp_frontend' / 'test.sh'}"
    right = CommandProbe(environment, Journal(), test)
    assert right.mismatch(NO_SCRIPT) is None
    assert right.ask(Question(NO_SCRIPT, Signature(MismatchKind.COMMAND))).answer is Answer.NONE
    wrong = CommandProbe(environment, Journal(), f"WRONG=1 {test}")
    found = wrong.mismatch(NO_SCRIPT)
    assert found is not None
    assert found.kind is MismatchKind.COMMAND
    assert (wrong.asked, right.asked) == (1, 1)
