"""From two runs to one mismatch, or to the reason why they are no evidence."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchbisect.core.verdict import MismatchKind
from torchbisect.probe.judge.classify import agreed_ending, find_mismatch, find_untestable, same_exception_in_both
from torchbisect.probe.judge.matching import Strictness, matches
from torchbisect.probe.judge.observation import Difference, Ending, Observation
from torchbisect.probe.judge.signature import Signature

INSIDE = ("repro.py:<module>:9", "torch/_dynamo/eval_frame.py:_fn", "repro.py:f:4")
OUTSIDE = ("repro.py:<module>:9", "repro.py:compare:4")


def test_two_runs_that_agree_are_no_mismatch(shown) -> None:
    observation = shown.compiled(shown.finished)
    assert find_mismatch(observation) is None
    assert find_untestable(observation) is None


def test_the_summary_names_the_difference_in_one_line(shown, lost_grad) -> None:
    found = find_mismatch(shown.compiled(shown.finished, lost_grad()))
    assert found is not None
    assert found.summary == "compiled gives requires_grad=False where eager gives True (call 0 output)"
    assert (found.eager, found.compiled) == ("True", "False")


def test_a_recorded_difference_takes_precedence_over_an_exit(shown, lost_grad) -> None:
    observation = shown.compiled(shown.exits(1, "MISMATCH\n"), lost_grad())
    found = find_mismatch(observation)
    assert found is not None
    assert found.signature == Signature.of_difference(lost_grad())
    assert found.consequence == "compiled exits with status 1, eager finishes"
    # The same bug once the comparison is gone.
    assert find_mismatch(shown.compiled(shown.finished, lost_grad())).signature == found.signature


def test_an_exit_without_a_recorded_difference_is_the_mismatch(shown) -> None:
    found = find_mismatch(shown.compiled(shown.exits(1, "epoch 3: loss 0.52\nMISMATCH at step 12\n")))
    assert found is not None
    assert (found.kind, found.signature.message) == (MismatchKind.RAISES, "MISMATCH at step <n>")


def test_an_assertion_is_named_before_memory_that_an_output_shares(shown) -> None:
    failed = shown.ends(shown.raised("AssertionError", "the sign changed", "repro.py:<module>:9"))
    place = "call 0 output"
    shares = shown.differs(MismatchKind.ALIASING, place, "shared storage with argument x", "not shared", "shared")
    wrong = shown.differs(MismatchKind.VALUES, place, "value", "0", "1")
    for differences, kind in (((shares,), MismatchKind.RAISES), ((wrong, shares), MismatchKind.VALUES)):
        found = find_mismatch(shown.compiled(failed, *differences))
        assert found is not None
        assert found.kind is kind
        assert len(found.others) == len(differences)


@pytest.mark.parametrize("frames", [INSIDE, OUTSIDE, (*OUTSIDE, "torch/testing/_comparison.py:assert_close")])
def test_a_recorded_difference_takes_precedence_over_an_assertion(shown, lost_grad, frames: tuple[str, ...]) -> None:
    failed = shown.ends(shown.raised("AssertionError", "", *frames))
    found = find_mismatch(shown.compiled(failed, lost_grad("call 0 output")))
    assert found is not None
    assert found.kind is MismatchKind.METADATA
    assert any(signature.exception == "AssertionError" for signature in found.others)


def test_differences_after_an_exception_are_its_consequence(shown) -> None:
    stopped = shown.ends(shown.raised("AssertionError", "", *INSIDE))
    left = shown.differs(MismatchKind.SIDE_EFFECTS, "global losses", "length", "3", "0")
    printed = shown.differs(MismatchKind.SIDE_EFFECTS, "printed line 0", "text", "epoch 0", "")
    found = find_mismatch(shown.compiled(stopped, left, printed))
    assert found is not None
    assert found.signature.exception == "AssertionError"
    assert found.others == ()


@pytest.mark.parametrize(("asked", "kind"), [("losses", MismatchKind.SIDE_EFFECTS), ("total", MismatchKind.RAISES)])
def test_after_a_failed_assertion_only_its_own_globals_count(shown, asked: str, kind: MismatchKind) -> None:
    source = f"import torch\nlosses, total = [], 0\nassert len({asked}) > 1\nlosses = None\n"
    stopped = shown.ends(shown.raised("AssertionError", "", "repro.py:<module>:3"))
    left = shown.differs(MismatchKind.SIDE_EFFECTS, "global losses", "length", "3", "0")
    found = find_mismatch(shown.compiled(stopped, left), source=source)
    assert found is not None
    assert found.kind is kind


def test_a_compiler_error_takes_precedence_over_every_difference(shown, lost_grad) -> None:
    broken = shown.ends(shown.raised("KeyError", "s0", "repro.py:f:3", "torch/_inductor/graph.py:run_node"))
    found = find_mismatch(shown.compiled(broken, lost_grad()))
    assert found is not None
    assert (found.kind, found.others) == (MismatchKind.RAISES, ())
    assert found.summary == "compiled raises KeyError: s0, eager finishes"


def test_crash_and_hang(shown) -> None:
    crash = find_mismatch(shown.compiled(Ending("signalled", signal="SIGSEGV")))
    hang = find_mismatch(shown.compiled(Ending("timed-out", seconds=90)))
    assert crash is not None
    assert hang is not None
    assert (crash.kind, crash.signature.exception, hang.kind) == (MismatchKind.CRASH, "SIGSEGV", MismatchKind.HANG)


# Endings of both runs ------------------------------------------------------------------------------------------------


def test_the_same_failure_in_both_runs_is_no_evidence(shown) -> None:
    eager = shown.ends(shown.raised("RuntimeError", "shape '[7, 3]' is invalid for input of size 8", "repro.py:f:3"))
    text = "Dynamo failed to run FX node: got RuntimeError(\"shape '[7, 3]' is invalid for input of size 8\")"
    compiled = shown.ends(shown.raised("torch._dynamo.exc.TorchRuntimeError", text, "torch/_dynamo/utils.py:run_node"))
    observation = shown.both(eager, compiled)
    assert find_untestable(observation).reason == "fails-in-eager"
    assert find_untestable(shown.both(shown.exits(3), shown.exits(3))).reason == "fails-in-eager"


def test_another_exception_and_a_missing_exception_are_mismatches(shown) -> None:
    eager = shown.ends(shown.raised("ValueError", "alpha must not be zero", "repro.py:f:3"))
    compiled = shown.ends(shown.raised("KeyError", "s0", "torch/_inductor/graph.py:run_node"))
    differently = find_mismatch(shown.both(eager, compiled))
    missing = find_mismatch(shown.both(eager, shown.finished))
    assert differently is not None
    assert missing is not None
    assert (differently.kind, missing.kind) == (MismatchKind.RAISES_DIFFERENTLY, MismatchKind.MISSING_RAISE)
    assert missing.signature.exception == "ValueError"
    assert find_untestable(shown.both(eager, shown.finished)) is None


@pytest.mark.parametrize("compiled", ["finished", "KeyError: no kernel"])
def test_the_expected_exception_in_both_runs(shown, compiled: str) -> None:
    """On the torch that gets it right the script fails in both runs, and that is no fault of the script's."""
    eager = shown.ends(shown.raised("ValueError", "alpha cannot be 0", "repro.py:f:3"))
    name, _, words = compiled.partition(": ")
    other = shown.ends(shown.raised(name, words, "torch/_dynamo/x.py:g")) if words else shown.finished
    found = find_mismatch(shown.both(eager, other))
    assert found is not None
    assert found.kind in (MismatchKind.MISSING_RAISE, MismatchKind.RAISES_DIFFERENTLY)
    assert same_exception_in_both(shown.both(eager, eager), found.signature)
    assert not same_exception_in_both(shown.both(eager, other), found.signature)
    another = shown.ends(shown.raised("ValueError", "the file was not found", "repro.py:f:1"))
    assert not same_exception_in_both(shown.both(another, another), found.signature)
    for kind in (MismatchKind.RAISES, MismatchKind.VALUES):
        assert not same_exception_in_both(shown.both(eager, eager), dataclasses.replace(found.signature, kind=kind))


def test_an_exception_is_placed_at_the_call_that_it_came_out_of(shown) -> None:
    raised = shown.ends(shown.raised("KeyError", "k", "torch/x.py:g"))
    out_of_call = dataclasses.replace(raised, raised_in_call=True, call_seconds=(0.1, 0.2), compiled=1)
    for compiled, place in ((out_of_call, "call 1 ending"), (raised, "the script's end")):
        found = find_mismatch(shown.compiled(compiled))
        assert found is not None
        assert found.place == place


def test_an_exception_of_the_compiled_call_in_both_runs_is_agreement(shown) -> None:
    raised = shown.raised("RuntimeError", "mat1 and mat2 shapes cannot be multiplied", "repro.py:f:3")
    inside = dataclasses.replace(shown.ends(raised), raised_in_call=True)
    wrapped = shown.raised("torch._dynamo.exc.TorchRuntimeError", f"RuntimeError: {raised.message}", "torch/x.py:g")
    compiled = dataclasses.replace(inside, raised=wrapped)
    assert str(agreed_ending(shown.both(inside, compiled))).startswith("raises ")
    assert agreed_ending(shown.both(shown.ends(raised), compiled)) is None
    other = dataclasses.replace(inside, raised=shown.raised("IndexError", "index 5 is out of bounds", "torch/x.py:g"))
    assert agreed_ending(shown.both(inside, other)) is None
    aborted = dataclasses.replace(inside, how="signalled", signal="SIGABRT", raised=None)
    assert agreed_ending(shown.both(inside, aborted)) is None
    found = find_mismatch(shown.both(inside, aborted))
    assert found is not None
    assert found.kind is MismatchKind.CRASH


@pytest.mark.parametrize(
    ("name", "message", "cause", "agrees"),
    [
        ("RuntimeError", "a and b must have same reduction dim", "", True),
        ("torch._dynamo.exc.TorchRuntimeError", "got RuntimeError('a and b must have same reduction dim')", "", True),
        ("torch._dynamo.exc.TorchRuntimeError", "Dynamo failed to run FX node", "RuntimeError", True),
        ("torch._inductor.exc.InductorError", "LoweringException", "AssertionError", False),
        ("torch._dynamo.exc.BackendCompilerFailed", "backend='inductor' raised:\nKeyError: 's0'", "", False),
        ("KeyError", "'s0'", "", False),
    ],
)
def test_an_exception_agrees_by_its_class_whatever_its_words(
    shown, name: str, message: str, cause: str, agrees: bool
) -> None:
    eager = shown.raised("RuntimeError", "mat1 and mat2 shapes cannot be multiplied", "repro.py:f:3")
    raised = shown.raised(name, message, "torch/x.py:g")
    bases = ("RuntimeError", "Exception", "BaseException") if name.startswith("torch.") else raised.bases
    raised = dataclasses.replace(
        raised, bases=bases, cause=shown.raised(cause, "no", "torch/y.py:h") if cause else None
    )
    observation = shown.both(
        *(dataclasses.replace(shown.ends(one), raised_in_call=True, compiled=1) for one in (eager, raised))
    )
    assert (agreed_ending(observation) is not None) == agrees
    assert (find_mismatch(observation) is None) == agrees


@pytest.mark.parametrize(
    "message",
    [
        "double free or corruption (!prev)",
        "munmap_chunk(): invalid pointer",
        "terminate called after throwing an instance of 'c10::Error'",
        "python: x.cpp:3: int main(): Assertion `false' failed.",
    ],
)
def test_the_last_words_of_an_aborted_process_are_said(shown, message: str) -> None:
    aborted = Ending("signalled", signal="SIGABRT", errors=f"a warning\n{message}\nmore\n", compiled=1)
    found = find_mismatch(shown.compiled(aborted))
    assert found is not None
    assert f"SIGABRT: {message}, eager" in found.summary


def test_words_of_a_kernel_are_said_without_its_folders(shown) -> None:
    folder = "/tmp/run-39ya2ujv/homes-axs56jby/home-zho73br5/torchinductor_user/q5"
    said = f"kernel, {folder}/cq52.main.cpp:13, index out of bounds: 0 <= tmp7 < 1L"
    errors = f"terminate called after throwing an instance of 'std::runtime_error'\n  what():  {said}\n"
    aborted = find_mismatch(shown.compiled(Ending("signalled", signal="SIGABRT", errors=errors, compiled=1)))
    raised = find_mismatch(shown.compiled(shown.ends(shown.raised("RuntimeError", said, "torch/x.py:g"))))
    for found in (aborted, raised):
        assert found is not None
        assert "kernel, …/cq52.main.cpp:13, index out of bounds: 0 <= tmp7 < 1L" in found.summary


def test_the_time_that_ran_out_is_the_one_that_was_allowed() -> None:
    """A limit of 15 seconds is on processor time; on a loaded machine the clock may show 60."""
    long, short = Ending("timed-out", seconds=60.2, allowed=15.0), Ending("timed-out", seconds=15.3, allowed=15.0)
    untestable = find_untestable(Observation(long, Ending("lost")))
    assert untestable is not None
    assert "within 15 s of processor time (60 s on this loaded machine)" in untestable.detail
    hang = find_mismatch(Observation(Ending("finished", seconds=0.1, compiled=1), short))
    assert hang is not None
    assert hang.summary == "compiled does not end within 15 s, eager finishes in 0.1 s"


def test_an_exit_with_status_0_is_a_normal_ending(shown) -> None:
    assert find_mismatch(shown.both(shown.exits(0), shown.finished)) is None


@pytest.mark.parametrize(
    ("observation", "reason"),
    [
        (Observation(Ending("timed-out"), Ending("timed-out")), "timed-out"),
        (Observation(Ending("timed-out"), Ending("lost")), "timed-out"),
        (Observation(Ending("finished"), Ending("lost")), "lost"),
        (Observation(Ending("finished"), Ending("out-of-memory")), "out-of-memory"),
        (Observation(Ending("signalled", signal="SIGSEGV"), Ending("signalled", signal="SIGSEGV")), "crashes-in-eager"),
        (Observation(Ending("finished", waited_for_input=True), Ending("finished")), "reads-input"),
        (Observation(Ending("finished"), Ending("finished")), "not-compiled"),
        (Observation(Ending("exited", output="no CUDA device: skipped\n"), Ending("exited")), "no-cuda"),
    ],
)
def test_runs_that_are_no_evidence(observation: Observation, reason: str) -> None:
    trouble = find_untestable(observation)
    assert trouble is not None
    assert trouble.reason == reason
    assert "\n" not in trouble.detail


_ENDINGS = st.one_of(
    st.just(Ending("finished", compiled=1)),
    st.sampled_from(["timed-out", "out-of-memory", "lost"]).map(Ending),
    st.integers(0, 3).map(lambda status: Ending("exited", status=status)),
    st.sampled_from(["SIGSEGV", "SIGKILL"]).map(lambda name: Ending("signalled", signal=name)),
)
_DIFFERENCES = st.lists(
    st.builds(
        Difference,
        st.sampled_from(list(MismatchKind)),
        st.sampled_from(["call 0 output", "global x", "printed line 1", "call 1 argument x.grad"]),
        st.sampled_from(["value", "requires_grad", "exception"]),
        st.sampled_from(["True", "1.5", "returned", "ValueError: no"]),
        st.sampled_from(["False", "nan", "KeyError: 'x'"]),
    ),
    max_size=4,
).map(tuple)


@given(st.builds(Observation, _ENDINGS, _ENDINGS, _DIFFERENCES))
def test_every_observation_is_judged_and_its_mismatch_is_its_own(observation: Observation) -> None:
    find_untestable(observation)
    found = find_mismatch(observation)
    if found is not None:
        assert "\n" not in found.summary
        assert matches(found.signature, found.signature, Strictness.STRICT)
        again = find_mismatch(Observation.from_json(dataclasses.asdict(observation)))
        assert again is not None
        assert again.signature == found.signature
