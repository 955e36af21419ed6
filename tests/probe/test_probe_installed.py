"""The probe on the torch that is installed here: real scripts, real compilers, real bugs of that torch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from corrupted import CORRUPTED
from installed_bugs import ALPHA, BUGS

from torchbisect.containers.environment import Environment
from torchbisect.core.repro import Repro, Settings
from torchbisect.core.timing import collected
from torchbisect.core.verdict import Answer, MismatchKind
from torchbisect.probe.journal import Journal
from torchbisect.probe.judge.matching import Strictness
from torchbisect.probe.judge.sanity_check import SanityChecks
from torchbisect.probe.localize.backends import localize, with_avoiding_settings
from torchbisect.probe.oracle import Question, times_shown
from torchbisect.probe.probe import Probe
from torchbisect.probe.probe_options import ProbeOptions
from torchbisect.probe.standalone_run import run_plain

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("name", BUGS)
def test_a_wrong_script_shows_a_mismatch_and_its_right_twin_none(probe: Probe, name: str) -> None:
    wrong, right, kinds = BUGS[name]
    found = probe.mismatch(Repro(wrong))
    assert found is not None
    assert found.kind in kinds
    assert probe.untestable(Repro(right)) is None
    assert probe.mismatch(Repro(right)) is None
    assert probe.ask(Question(Repro(right), found.signature)).answer is Answer.NONE


def test_a_missing_exception_that_both_runs_raise_is_no_mismatch(probe: Probe) -> None:
    """The missing exception, in a script that no longer catches it: where compiled raises it too nothing is wrong."""
    wrong = ALPHA.format(alpha="0.0").partition("try:")[0] + "compiled(torch.linspace(-1, 1, 4), 0.0)\n"
    found = probe.mismatch(Repro(wrong))
    assert found is not None
    assert found.kind is MismatchKind.MISSING_RAISE
    right, other = wrong.replace("aot_eager_decomp_partition", "eager"), wrong.replace(", 4)", ", -4)")
    assert [probe.ask(Question(Repro(source), found.signature)).answer for source in (wrong, right, other)] == [
        Answer.SAME,
        Answer.NONE,
        Answer.UNTESTABLE,
    ]


@pytest.mark.parametrize("name", BUGS)
def test_signatures_of_different_bugs_do_not_match(probe: Probe, name: str) -> None:
    """Each signature against each other's script, with tolerance: the two wrong numbers of one size are alike."""
    alike = {"python semantics", "hook ignored", "mutation"}
    found = probe.mismatch(Repro(BUGS[name][0]))
    assert found is not None
    for other, (wrong, _, _) in BUGS.items():
        verdict = probe.ask(Question(Repro(wrong), found.signature, strictness=Strictness.TOLERANT))
        if other == name:
            assert verdict.answer is Answer.SAME
        elif not {name, other} <= alike:
            assert verdict.answer is Answer.OTHER, (other, verdict)


def test_the_same_bug_in_a_shorter_script_with_other_names(probe: Probe) -> None:
    found = probe.mismatch(Repro(BUGS["handler skipped"][0]))
    assert found is not None
    shorter = """\
import torch

class Net(torch.nn.Module):
    def forward(self, value):
        try:
            value = value.view(5, 7)
        except Exception:
            pass
        return value

torch.compile(Net(), backend="eager")(torch.ones(3, 3))
"""
    assert probe.ask(Question(Repro(shorter), found.signature)).answer is Answer.SAME


TRAPS = {
    "import error": ("import torch\nimport torch.no_such_module\n", Answer.UNTESTABLE, "missing-api"),
    "another package": ("import torch, no_such_package\n", Answer.UNTESTABLE, "missing-module"),
    "eager fails too": (
        "import torch\ntorch.compile(lambda x: x.view(5, 7), backend='eager')(torch.ones(9))\n",
        Answer.UNTESTABLE,
        "fails-in-eager",
    ),
    "not compiled": ("import torch\nprint(torch.ones(3).sum())\n", Answer.UNTESTABLE, "not-compiled"),
    "reads input": ("import torch\ninput('name? ')\n", Answer.UNTESTABLE, "reads-input"),
    "no such syntax": ("import torch\ndef f(:\n", Answer.UNTESTABLE, "syntax-error"),
    "another exception of the same class": (
        "import torch\n"
        "@torch.compile(backend='eager', fullgraph=True)\n"
        "def f(x):\n    try:\n        return x @ x\n    except RuntimeError:\n        return x\n"
        "f(torch.ones(2, 3))\n",
        Answer.OTHER,
        "raises",
    ),
    "the script's own words": (
        "import torch\n@torch.compile(backend='eager')\ndef f(x):\n    return x + 1\nf(torch.ones(2))\n"
        "print('RuntimeError: shape is invalid for input of size 8')\n",
        Answer.NONE,
        None,
    ),
}


@pytest.mark.parametrize("finishes", [False, True], ids=["both runs", "eager first"])
@pytest.mark.parametrize("name", TRAPS)
def test_failures_for_another_reason_are_not_the_same_bug(probe: Probe, name: str, finishes: bool) -> None:
    source, answer, reason = TRAPS[name]
    found = probe.mismatch(Repro(BUGS["handler skipped"][0]))
    assert found is not None
    verdict = probe.ask(Question(Repro(source), found.signature, eager_must_succeed=finishes))
    assert (verdict.answer, verdict.reason) == (answer, reason), verdict


@pytest.mark.parametrize("end", ["raise ValueError(2)", "sys.exit(2)"])
def test_a_script_that_must_succeed_in_eager_is_not_compiled_after_it_failed(
    probe: Probe, tmp_path: Path, end: str
) -> None:
    compiled = tmp_path / "compiled"
    source = f"""\
import pathlib, sys, torch
def backend(graph, inputs):
    pathlib.Path({str(compiled)!r}).touch()
    return graph
torch.compile(lambda x: x + 1, backend=backend)(torch.ones(1))
"""
    found = probe.mismatch(Repro(BUGS["handler skipped"][0]))
    assert found is not None
    question = Question(Repro(source + end), found.signature, eager_must_succeed=True)
    assert (probe.succeeds_in_eager(Repro(source)), probe.succeeds_in_eager(Repro(source + end))) == (True, False)
    compiled.unlink()
    assert probe.ask(question).reason == "fails-in-eager"
    assert not compiled.exists()
    assert probe.ask(question.with_source(source + "sys.exit(0)")).answer is Answer.NONE
    assert compiled.exists()


# Localization --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "backend", "component"),
    [
        ("python semantics", "eager", "dynamo"),
        ("mutation", "aot_eager", "pt2-dispatcher"),
        ("no exception", "aot_eager_decomp_partition", "decompositions"),
    ],
)
def test_localization_names_the_component(probe: Probe, name: str, backend: str, component: str) -> None:
    repro = Repro(BUGS[name][0].replace(', backend="eager"', "").replace(', backend="aot_eager"', ""))
    found = probe.mismatch(repro, Settings(backend=backend))
    assert found is not None
    located = localize(probe, repro, found)
    assert (located.backend, located.component, located.settings.backend) == (backend, component, backend)
    assert located.table[-1].verdict.seconds >= 0


def test_localization_finds_the_flag_that_avoids_the_mismatch(probe: Probe) -> None:
    repro = Repro(BUGS["hook ignored"][0])
    found = probe.mismatch(repro)
    assert found is not None
    located = with_avoiding_settings(localize(probe, repro, found), probe, repro, found.signature)
    assert "torch._dynamo.config.skip_nnmodule_hook_guards = False" in located.fixed_by


# The journal, and the environment itself -----------------------------------------------------------------------------


def test_a_question_is_never_asked_twice(
    environment: Environment, probe: Probe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repro, path = Repro(BUGS["python semantics"][0]), tmp_path / "journal.jsonl"
    monkeypatch.setattr(probe, "journal", Journal(path))
    monkeypatch.setattr(probe, "_sanity", SanityChecks())
    before = probe.asked
    found = probe.mismatch(repro)
    assert found is not None
    verdict = probe.ask(Question(repro, found.signature, Settings(backend="aot_eager")))
    assert probe.sanity_check("eager") is None
    trace = probe.trace(repro)
    assert probe.asked > before
    with Probe(environment, Journal(path)) as second:
        again = second.mismatch(repro)
        assert again is not None
        assert again.signature == found.signature
        assert second.ask(Question(repro, found.signature, Settings(backend="aot_eager"))) == verdict
        assert second.trace(repro) == trace
        assert second.sanity_check("eager") is None
        assert second.asked == 0


def test_a_trace_has_exceptions_of_calls_and_values_of_fields(probe: Probe) -> None:
    source = """
import argparse, torch
class Refused(ValueError): pass
def inner(x, n):
    if n > 1: raise Refused(n)
    return x
def outer(x, n):
    try: return inner(x, n)
    except ValueError: return x + 1
options = argparse.Namespace(rate=2, name="a")
first, second = divmod(7, 2)
outer(torch.ones(2), second); outer(torch.ones(2), options.rate)
module = torch.compile(torch.nn.Linear(2, 2))
try: module(torch.ones(3))
except RuntimeError: pass
"""
    trace = probe.trace(Repro(source))
    raised = [(call.function, call.raised) for call in trace.calls]
    assert raised[:4] == [("outer", ""), ("inner", ""), ("outer", ""), ("inner", "ValueError")]
    assert [item for item in raised[4:] if item[1]] == [("Linear.forward", "RuntimeError")]
    held = {value.name: (value.text, value.exact) for value in trace.values}
    assert held["options"] == ("argparse.Namespace(rate=2, name='a')", True)
    assert (held["first"], held["second"]) == (("3", True), ("1", True))


def test_a_fresh_process_gives_the_same_answer(probe: Probe) -> None:
    repro = Repro(BUGS["side effect lost"][0])
    found = probe.mismatch(repro)
    assert found is not None
    assert probe.ask_in_fresh_process(Question(repro, found.signature)).same
    assert times_shown(probe, Question(repro, found.signature), 2) == 2


def test_warm_processes_are_not_used_after_a_fresh_one_disagreed(environment: Environment, tmp_path: Path) -> None:
    """The script goes wrong in every run of the agent but in none of the next one's."""
    source = f"""\
import os, torch
parent = {str(tmp_path / "parent")!r}
if not os.path.exists(parent):
    open(parent, "w").write(str(os.getppid()))
odd = open(parent).read() == str(os.getppid())
def f(x):
    return x + 1 if torch.compiler.is_compiling() and odd else x
torch.compile(f, backend="eager")(torch.ones(2))
"""
    repro = Repro(source)
    notices: list[str] = []
    with Probe(environment, Journal(), ProbeOptions(check_every=1), notify=notices.append) as probe:
        found = probe.mismatch(repro)
        assert found is not None
        assert probe.ask(Question(repro, found.signature)).answer is Answer.NONE
        assert "a fresh process answers none where a forked one answered same" in notices[0]


def test_runs_that_disagree_are_flaky(probe: Probe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script counts its runs in a file and goes wrong in some of them only, eager and compiled."""
    counter = tmp_path / "runs"
    source = f"""\
import torch
with open({str(counter)!r}, "a+") as runs:
    runs.write("x")
    runs.seek(0)
    odd = len(runs.read()) // 3 % 2
def f(x):
    return x + 1 if torch.compiler.is_compiling() and odd else x
torch.compile(f, backend="eager")(torch.ones(2))
"""
    wrong = Repro(source.replace("len(runs.read()) // 3 % 2", "1"))
    monkeypatch.setattr(probe, "options", replace(probe.options, repeat=6))
    found = probe.mismatch(wrong)
    assert found is not None
    assert probe.ask(Question(wrong, found.signature)).answer is Answer.SAME
    counter.write_text("")
    verdict = probe.ask(Question(Repro(source), found.signature))
    assert (verdict.answer, verdict.reason) == (Answer.UNTESTABLE, "flaky")


def test_without_a_compiler_nothing_that_inductor_says_is_evidence(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "/nonexistent/g++")
    monkeypatch.setenv("CC", "/nonexistent/gcc")
    repro = Repro("import torch\ntorch.compile(lambda x: x.sin() + 1)(torch.ones(3))\n")
    with Probe(environment, Journal()) as probe:
        trouble = probe.untestable(repro)
        assert trouble is not None
        assert trouble.reason == "no-compiler"
        assert probe.sanity_check("inductor") is not None
        assert probe.mismatch(Repro(BUGS["python semantics"][0])) is not None


# Plain python --------------------------------------------------------------------------------------------------------


def test_a_script_under_plain_python(environment: Environment) -> None:
    wrong = BUGS["handler skipped"][0]
    failed = run_plain(environment, wrong)
    assert failed.failed
    assert "TorchRuntimeError" in failed.last_words
    assert not run_plain(environment, wrong, settings=None).failed
    exits = run_plain(environment, "import sys\nprint('MISMATCH')\nsys.exit(len(sys.argv))\n", ["a", "b"])
    assert (exits.status, exits.last_words) == (3, "MISMATCH")
    assert run_plain(environment, "while True: pass\n", timeout=0.5).status is None


HANDLERS = {
    "message": "except Exception as error:\n    print('failed', error)\n",
    "traceback": "except Exception:\n    import sys, traceback\n    traceback.print_exc(file=sys.stdout)\n",
    "another": "except Exception as error:\n    raise SystemExit('failed') from error\n",
}


def caught(source: str, handler: str) -> str:
    """The script with its last line in a ``try`` of its own."""
    *lines, last = source.splitlines(keepends=True)
    return "".join(lines) + f"try:\n    {last}{handler}"


@pytest.mark.parametrize("handler", HANDLERS.values(), ids=HANDLERS)
def test_an_exception_that_the_script_catches_is_the_same_bug_uncaught(probe: Probe, handler: str) -> None:
    bare = BUGS["handler skipped"][0]
    found, uncaught = probe.mismatch(Repro(caught(bare, handler))), probe.mismatch(Repro(bare))
    assert found is not None
    assert uncaught is not None
    assert found.kind is uncaught.kind is MismatchKind.RAISES
    assert probe.ask(Question(Repro(bare), found.signature)).same
    assert probe.ask(Question(Repro(caught(bare, handler)), uncaught.signature)).same
    assert probe.mismatch(Repro(caught(BUGS["handler skipped"][1], handler))) is None


BACKWARD = """\
import torch
from torch._dynamo.backends.common import aot_autograd
def backward(graph, inputs):
    def run(*values):
        {statement}
        return graph(*values)
    return run
backend = aot_autograd(fw_compiler=lambda graph, inputs: graph, bw_compiler=backward)
out = torch.compile(lambda x: x.sin().sum(), backend=backend)(torch.ones(3, requires_grad=True))
out.backward()
"""


def test_an_exception_of_a_backward_that_the_script_catches(probe: Probe) -> None:
    wrong, right = (BACKWARD.format(statement=text) for text in ("raise ValueError('no')", "pass"))
    found = probe.mismatch(Repro(caught(wrong, HANDLERS["message"])))
    assert found is not None
    assert (found.kind, found.place) == (MismatchKind.RAISES, "backward 0")
    assert probe.ask(Question(Repro(wrong), found.signature)).same
    assert probe.mismatch(Repro(caught(right, HANDLERS["message"]))) is None


@pytest.mark.parametrize("handler", ["message", "traceback"])
def test_an_exception_of_both_runs_that_the_script_prints_is_no_mismatch(probe: Probe, handler: str) -> None:
    both = "import torch\ntorch.compile(lambda x: x @ x, backend='eager')(torch.ones(2, 3))\n"
    both = caught(both, HANDLERS[handler].replace("print('failed', error)", "said = f'failed: {error}'; print(said)"))
    assert probe.untestable(Repro(both)) is None
    assert probe.mismatch(Repro(both)) is None


@pytest.mark.long
def test_corrupted_memory_that_only_plain_python_shows(environment: Environment) -> None:
    wrong, right = (Repro(CORRUPTED.format(backend=name)) for name in ("corrupting", "'eager'"))
    with Probe(environment, Journal()) as own:
        assert own.mismatch_in_plain_process(right) is None
        assert own.mismatch(wrong) is None
        found = own.mismatch_in_plain_process(wrong)
        assert found is not None
        assert found.kind is MismatchKind.CRASH
        assert "SIGABRT: free(): invalid pointer" in found.summary
        assert own.ask(Question(wrong, found.signature)).same
        assert own.ask(Question(wrong, found.signature, Settings(backend="eager"))).answer is Answer.NONE


ABORTS_ONCE = """\
import os, pathlib, torch
flag = pathlib.Path({flag!r})
def backend(graph, inputs):
    if flag.exists():
        flag.unlink()
        os.abort()
    return graph
torch.compile(torch.sin, backend=backend)(torch.ones(2))
"""


@pytest.mark.long
def test_plain_python_that_fails_once_and_not_again_is_chance(environment: Environment, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    script, said = Repro(ABORTS_ONCE.format(flag=str(flag))), list[str]()
    with Probe(environment, Journal(), notify=said.append) as own:
        assert own.mismatch(script) is None
        flag.touch()
        assert own.mismatch_in_plain_process(script) is None
        assert own.runs_are_cheap
    assert not flag.exists()
    assert said == ["one of 3 runs under plain python failed, by chance: compiled is ended by SIGABRT, eager finishes"]


def test_a_module_that_torch_compile_refuses_is_a_mismatch(probe: Probe) -> None:
    """Without torch.compile the script has nothing wrong, although its compiled module can't even be wrapped."""
    found = probe.mismatch(
        Repro(
            "import torch\n"
            "model = torch.jit.freeze(torch.jit.script(torch.nn.Sequential(torch.nn.Linear(3, 3)).eval()))\n"
            "compiled = torch.compile(model, backend='eager')\n"
        )
    )
    assert found is not None
    assert "eager finishes" in found.summary


@pytest.mark.long
def test_the_agent_of_a_fresh_check_serves_a_second_thread(environment: Environment) -> None:
    """A start takes longer than most questions: none is needed for the first clone."""
    wrong = next(iter(BUGS.values()))[0]
    with collected() as spans, Probe(environment, Journal()) as probe:
        found = probe.mismatch(Repro(wrong))
        assert found is not None
        question = Question(Repro(wrong), found.signature)
        probe.prepare_fresh_process(Repro(wrong))
        assert probe.fresh_process_agrees(question)
        with probe.clone() as first, probe.clone() as second:
            assert [clone.ask_once(question).answer for clone in (first, second)] == [Answer.SAME] * 2
    # That of the probe, the spare one, and that of the second clone.
    assert sum(span.kind == "start" for span in spans) == 3


def test_the_prepared_process_answers_and_the_first_one_is_prepared(probe: Probe, environment: Environment) -> None:
    """A process compiles something itself before it answers many questions, and the other one answers meanwhile."""
    repro = Repro(next(iter(BUGS.values()))[0])
    found = probe.mismatch(repro)
    assert found is not None
    question = Question(repro, found.signature, Settings(backend="eager"))
    with collected() as spans, Probe(environment, Journal()) as other:
        other.prepare_fresh_process(repro)
        other.trace(repro)
        other.use_prepared_process()
        assert other.ask(question).same
        assert other.fresh_process_agrees(question)
    assert [span.kind for span in spans].count("start") == 2
    assert [span.name for span in spans].count("prewarm") == 2
