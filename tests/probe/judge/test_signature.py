"""Signatures that match, and signatures that do not."""

from __future__ import annotations

import dataclasses
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from torchbisect.core.verdict import MismatchKind
from torchbisect.probe.judge.matching import Strictness, explain, matches
from torchbisect.probe.judge.observation import Difference, Raised
from torchbisect.probe.judge.signature import Signature

STRICT, TOLERANT = Strictness.STRICT, Strictness.TOLERANT

ASSERTING = """\
import torch
def build(x):
    out = torch.zeros(3)
    out[torch.tensor([0])] = x
    assert out.requires_grad, "lost its gradient"
    return out
class Other:
    def check(self, result):
        flag = result.shape == (3,)
        assert flag
        if not torch.equal(result, result):
            raise ValueError("they differ")
torch.compile(build)(torch.ones(1, requires_grad=True))
"""

_SOME_WORDS = "stride shape missing dtype buffer redefined node gradient view fake 12 buf7"
_WORDS = st.lists(st.sampled_from(_SOME_WORDS.split()), max_size=6)
_ENDING_KINDS = (MismatchKind.RAISES, MismatchKind.RAISES_DIFFERENTLY, MismatchKind.MISSING_RAISE)


@st.composite
def signatures(draw: st.DrawFn) -> Signature:
    """Any signature that the probe could write."""
    kind = draw(st.sampled_from(list(MismatchKind)))
    words = draw(_WORDS)
    if kind in _ENDING_KINDS or kind is MismatchKind.CRASH:
        return Signature(
            kind,
            exception=draw(st.sampled_from(["RuntimeError", "AssertionError", "KeyError", "TorchRuntimeError"])),
            bases=tuple(draw(st.lists(st.sampled_from(["LookupError", "Exception"]), max_size=2))),
            message=" ".join(words),
            causes=tuple(draw(st.lists(_WORDS.map(" ".join), max_size=2))),
            frames_torch=tuple(draw(st.lists(st.sampled_from(["torch/a.py:f", "torch/b.py:g"]), max_size=2))),
            subjects=draw(st.none() | st.lists(st.sampled_from(["requires_grad", "shape"])).map(tuple)),
        )
    return Signature(
        kind,
        place=draw(st.sampled_from(["output", "gradient", "global", "argument"])),
        attribute=draw(st.sampled_from(["requires_grad", "value", "dtype"])),
        eager=draw(st.sampled_from(["True", "number"])),
        compiled=draw(st.sampled_from(["False", "number"])),
        relative=draw(st.none() | st.floats(0, 10)),
    )


@given(signatures(), st.sampled_from(Strictness))
def test_a_signature_is_the_same_bug_as_itself(signature: Signature, strictness: Strictness) -> None:
    assert matches(signature, signature, strictness)
    assert explain(signature, signature, strictness) == "same"


@given(signatures(), signatures(), st.sampled_from(Strictness))
def test_matching_is_symmetric(left: Signature, right: Signature, strictness: Strictness) -> None:
    assert matches(left, right, strictness) == (explain(left, right, strictness) == "same")
    left, right = dataclasses.replace(left, relative=None), dataclasses.replace(right, relative=None)
    assert matches(left, right, strictness) == matches(right, left, strictness)


@given(signatures(), signatures())
@example(
    Signature(MismatchKind.RAISES, exception="RuntimeError"),
    Signature(MismatchKind.RAISES, exception="RuntimeError", causes=("stride shape missing",)),
)
def test_a_strict_match_is_a_tolerant_match(left: Signature, right: Signature) -> None:
    if matches(left, right, STRICT):
        assert matches(left, right, TOLERANT)


@given(signatures())
def test_json_round_trip(signature: Signature) -> None:
    again = Signature.from_json(signature.to_json())
    assert again == signature
    assert again.fingerprint == signature.fingerprint
    assert "\n" not in signature.text


# Exceptions of torch -------------------------------------------------------------------------------------------------


def of(raised: Raised, source: str = "") -> Signature:
    return Signature.of_raised(MismatchKind.RAISES, raised, source)


def failing_view(shown, size: int, name: str, line: int, *, newer: int = 0) -> Raised:
    """One bug, as releases from 2.2 to 2.13 word it."""
    call = f"call_method view(*(FakeTensor(..., size=({size},)), 7, 3), **{{}})"
    inner = f"shape '[7, 3]' is invalid for input of size {size}"
    texts = [
        f"Failed running {call}:\n{inner}",
        f'Dynamo failed to run FX node with fake tensors: {call}: got RuntimeError("{inner}")',
        "RuntimeError when making fake tensor call\n  Explanation: Dynamo failed to run FX node with fake tensors: "
        f'{call}: got RuntimeError("{inner}")\n  Hint: Your code may result in an error when running in eager.\n\n'
        "  Developer debug context: \n",
    ]
    block = f'\n\nfrom user code:\n   File "/tmp/{name}.py", line {line}, in {name}\n    return x.view(7, 3)\n'
    frames = ("torch/_dynamo/utils.py:run_node", f"torch/_refs/__init__.py:{'_reshape' if newer < 2 else '_resolve'}")
    return shown.raised(
        "torch._dynamo.exc.TorchRuntimeError",
        texts[newer] + block,
        f"repro.py:{name}:{line}",
        *frames,
        bases=("torch._dynamo.exc.TorchDynamoException", "RuntimeError", "Exception", "BaseException"),
    )


@given(st.integers(1, 999), st.integers(1, 999), st.integers(1, 99), st.from_regex(r"[a-z]{1,9}", fullmatch=True))
def test_moved_lines_renamed_functions_and_other_shapes_are_the_same_bug(
    shown, left: int, right: int, line: int, name: str
) -> None:
    first, second = of(failing_view(shown, left, "view_or_flat", 8)), of(failing_view(shown, right, name, line))
    assert matches(first, second, STRICT), explain(first, second, STRICT)
    assert first.fingerprint == second.fingerprint


@pytest.mark.parametrize(("one", "other"), [(0, 1), (1, 2), (0, 2)])
def test_a_reworded_message_is_the_same_bug_on_another_torch_only(shown, one: int, other: int) -> None:
    first, second = (of(failing_view(shown, 8, "f", 3, newer=newer)) for newer in (one, other))
    assert matches(first, second, TOLERANT), explain(first, second, TOLERANT)
    assert not matches(first, second, STRICT)


def test_two_bugs_with_the_same_class_stay_two(shown) -> None:
    text = "specifying inputs= with .backward() not yet implemented for compiled autograd"
    first = of(shown.raised("RuntimeError", text, "repro.py:step:9", "torch/_dynamo/compiled_autograd.py:begin"))
    text = "Node redefined name aot0_primals_1!"
    second = of(shown.raised("RuntimeError", text, "repro.py:step:9", "torch/fx/graph.py:lint"))
    assert not matches(first, second, TOLERANT)
    assert "another message" in explain(first, second, TOLERANT)


@pytest.mark.parametrize("strictness", Strictness)
def test_a_name_in_a_message_may_be_one_that_only_one_script_binds(shown, strictness: Strictness) -> None:
    frame, text = "torch/_dynamo/variables/base.py:call_method", "'int' object has no attribute '{}'"
    binding = of(shown.raised("AttributeError", text.format("scale"), frame), "scale = 1\n")
    assert binding.message == text.format("<name>")
    assert matches(binding, of(shown.raised("AttributeError", text.format("scale"), frame)), strictness)
    assert not matches(binding, of(shown.raised("AttributeError", "'str' object has no keys", frame)), STRICT)
    special = of(
        shown.raised("AttributeError", text.format("__iter__"), frame), "class A:\n    def __iter__(self): ..."
    )
    assert special.message == text.format("__iter__")


def test_messages_about_one_wrong_shape_match_with_tolerance(shown) -> None:
    """As torch 2.2 and 2.4 have it, of one output that is not resized."""
    text = "The size of tensor a (0) must match the size of tensor b (3) at non-singleton dimension 0"
    first = of(shown.raised("RuntimeError", text, "torch/_functorch/_aot_autograd/runtime_wrappers.py:runtime_wrapper"))
    inner = shown.raised(
        "RuntimeError",
        "expand: attempting to expand a dimension of length 3!",
        "torch/_functorch/_aot_autograd/traced_function_transforms.py:joint",
        "torch/_refs/__init__.py:expand",
    )
    text = "backend='aot_eager' raised:\nRuntimeError: expand: attempting to expand a dimension of length 3!"
    second = of(shown.raised("torch._dynamo.exc.BackendCompilerFailed", text, "torch/_dynamo/x.py:f", cause=inner))
    assert matches(first, second, TOLERANT), explain(first, second, TOLERANT)
    assert not matches(first, second, STRICT)
    elsewhere = of(shown.raised("RuntimeError", "shape is invalid", "torch/_inductor/ir.py:View"))
    assert not matches(first, elsewhere, TOLERANT)


def test_the_same_class_from_another_place_is_another_bug_while_the_torch_stays(shown) -> None:
    first = of(shown.raised("AssertionError", "", "torch/_inductor/lowering.py:index_put_impl_"))
    second = of(shown.raised("AssertionError", "", "torch/_inductor/scheduler.py:fuse_nodes"))
    for strictness in Strictness:
        assert not matches(first, second, strictness)


def test_an_import_error_with_the_same_words_is_another_bug(shown) -> None:
    words = "shape is invalid for input of the given size"
    first = of(shown.raised("RuntimeError", words, "torch/a.py:f"))
    second = of(shown.raised("ImportError", words, "torch/a.py:f", bases=("Exception", "BaseException")))
    for strictness in Strictness:
        assert not matches(first, second, strictness)


def test_wrapper_exceptions_are_removed(shown) -> None:
    inner = "AttributeError: 'InstructionTranslator' object has no attribute 'parent'"
    wrapped = shown.raised(
        "torch._dynamo.exc.InternalTorchDynamoError", inner, "torch/_dynamo/variables/functions.py:bind"
    )
    bare = shown.raised(
        "torch._dynamo.exc.InternalTorchDynamoError", inner.partition(": ")[2], "torch/_dynamo/x.py:bind_args"
    )
    assert of(wrapped).exception == "AttributeError"
    assert matches(of(wrapped), of(bare), TOLERANT)
    text = "backend='inductor' raised:\nLoweringException: AssertionError: \n  target: aten.foo.default\n  args[0]: x"
    assert of(
        shown.raised("torch._dynamo.exc.BackendCompilerFailed", text, "torch/_inductor/graph.py:run_node")
    ).exception == ("AssertionError")


# The script's own assertions -----------------------------------------------------------------------------------------


def test_an_assertion_is_identified_by_its_subjects(shown) -> None:
    lost = of(shown.raised("AssertionError", "lost its gradient", "repro.py:build:5"), ASSERTING)
    assert lost.subjects == ("requires_grad",)
    renamed = (
        re.sub(r"\bout\b", "y", ASSERTING)
        .replace(', "lost its gradient"', "")
        .replace("import torch\n", "import torch\n\n\n")
    )
    again = of(shown.raised("AssertionError", "", "repro.py:f:7"), renamed)
    assert matches(lost, again, STRICT), explain(lost, again, STRICT)
    shape = of(shown.raised("AssertionError", "", "repro.py:check:10"), ASSERTING)
    assert shape.subjects == ("shape",)
    assert not matches(lost, shape, STRICT)
    assert "shape" in explain(lost, shape, STRICT)
    differing = of(shown.raised("ValueError", "they differ", "repro.py:check:12"), ASSERTING)
    assert differing.subjects == ("equal",)
    assert not matches(lost, differing, STRICT)


def test_an_assertion_that_fails_while_dynamo_traces_is_the_scripts_own(shown) -> None:
    """As torch 2.8 has it: an internal assertion, and the script's statement in the text below."""
    block = '\nfrom user code:\n   File "/tmp/a.py", line 6, in f\n    assert {}\n\nSet TORCHDYNAMO_VERBOSE=1'
    frames = (
        "repro.py:<module>:9",
        "torch/_dynamo/eval_frame.py:compile_wrapper",
        "torch/_dynamo/symbolic_convert.py:jump",
    )
    gradient = of(shown.raised("AssertionError", block.format('y.requires_grad, "lost its gradient"'), *frames))
    shape = of(shown.raised("AssertionError", block.format("y.shape == (3,)"), *frames))
    assert gradient.subjects == ("requires_grad",)
    assert not matches(gradient, shape, STRICT)
    # As 2.4 and 2.5 have it: raised by the script itself, in the part that runs after a graph break.
    resumed = of(
        shown.raised("AssertionError", "lost its gradient", "repro.py:torch_dynamo_resume_in_build_at_5:5"), ASSERTING
    )
    assert resumed.frames_user == ("build",)
    assert matches(gradient, resumed, TOLERANT)


@pytest.mark.parametrize("message", ["assertion error", "lost its gradient"])
def test_an_assertion_in_the_graph_is_the_scripts_own(shown, message: str) -> None:
    """As torch up to 2.3 has it: a ``RuntimeError`` out of the graph, with the assertion's message if it has one."""
    source = ASSERTING if message != "assertion error" else ASSERTING.replace(', "lost its gradient"', "")
    raised = shown.raised("RuntimeError", message, "repro.py:<module>:13", "torch/fx/graph_module.py:__call__")
    old = of(raised, source)
    new = of(shown.raised("AssertionError", "lost its gradient", "repro.py:build:5"), ASSERTING)
    assert "requires_grad" in (old.subjects or ())
    assert matches(old, new, TOLERANT), explain(old, new, TOLERANT)
    # Without the script there is only the message to go by.
    assert matches(of(raised), new, TOLERANT)


# Differences ---------------------------------------------------------------------------------------------------------


def test_places_match_by_role(shown, lost_grad) -> None:
    first = Signature.of_difference(lost_grad("call 0 output[1]['loss']"))
    assert matches(first, Signature.of_difference(lost_grad("call 7 output")), STRICT)
    assert matches(first, Signature.of_difference(lost_grad("global got")), STRICT)
    for elsewhere in ("call 0 argument x", "call 0 argument x.grad", "backward 0 gradient[0]"):
        assert not matches(first, Signature.of_difference(lost_grad(elsewhere)), STRICT), elsewhere


def test_an_attribute_of_an_object_may_become_an_argument_or_a_global(lost_grad) -> None:
    first = Signature.of_difference(lost_grad("call 0 self.state"))
    for elsewhere in ("call 0 argument x", "call 0 global state", "call 0 closure state"):
        assert matches(first, Signature.of_difference(lost_grad(elsewhere)), STRICT), elsewhere
    assert not matches(first, Signature.of_difference(lost_grad("call 0 output")), STRICT)


def test_the_direction_of_a_difference_matters(lost_grad) -> None:
    first = Signature.of_difference(lost_grad())
    assert not matches(first, Signature.of_difference(lost_grad(eager="False", compiled="True")), TOLERANT)


def test_only_the_size_of_an_error_matters(shown) -> None:
    def wrong(eager: str, compiled: str) -> Signature:
        return Signature.of_difference(shown.differs(MismatchKind.VALUES, "call 0 output", "value", eager, compiled))

    assert matches(wrong("0", "1"), wrong("0", "4"), STRICT)
    assert wrong("1.5", "nan").compiled == "nan"
    assert not matches(wrong("1.5", "nan"), wrong("1.5", "2.5"), STRICT)
    assert not matches(wrong("1.0", "3.0"), wrong("1.0", "1.00001"), STRICT)
    assert matches(wrong("1.0", "1.00001"), wrong("1.0", "3.0"), STRICT)
    assert matches(wrong("1.0", "3.0"), wrong("1.0", "1.00001"), TOLERANT)
    assert matches(wrong("1.0", "1.009"), wrong("1.0", "1.011"), STRICT)


def test_a_caught_exception_matches_the_uncaught_one(shown) -> None:
    raised = shown.raised(
        "torch._dynamo.exc.TorchRuntimeError",
        "Failed running view\nwith fake tensors (*(FakeTensor(size=(8,)), 3), **{})",
        "torch/_dynamo/utils.py:run_node",
    )
    caught = Signature.of_difference(
        Difference(MismatchKind.RAISES, "call 0", "exception", "returned", "a first line", compiled_raised=raised)
    )
    escaped = of(raised)
    assert matches(caught, escaped, STRICT), explain(caught, escaped, STRICT)
    other = of(
        shown.raised(
            "torch._dynamo.exc.TorchRuntimeError", "Cannot mutate frozen dict", "torch/_dynamo/utils.py:run_node"
        )
    )
    assert not matches(caught, other, STRICT)


def test_a_fingerprint_ignores_user_frames(shown) -> None:
    signature = of(failing_view(shown, 8, "f", 3))
    assert dataclasses.replace(signature, frames_user=("g",)).fingerprint == signature.fingerprint
    assert dataclasses.replace(signature, message="another").fingerprint != signature.fingerprint
