"""Normalized messages: nothing is left that changes from run to run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchbisect.probe.judge.normalize import LONGEST, common_share, jaccard, keywords, normalize

# Pieces of real messages, so that random texts come near to what torch writes.
_PIECES = st.sampled_from(
    [
        "Failed running call_function <built-in function getitem>(*(FakeTensor(..., size=(8,)), 0), **{}):",
        "shape '[7, 3]' is invalid for input of size 8",
        'from user code:\n  File "/tmp/x.py", line 3, in f\n    return x.view(7, 3)\n',
        "Set TORCHDYNAMO_VERBOSE=1 for the internal stack trace",
        "Node redefined name aot0_primals_1!",
        "L['self'].weight",
        "buf12 and arg3_1",
        "at 0x7f00dead",
        "/tmp/torchinductor/ab/cab.cpp:12:3: error: no matching function",
        "C++ compile error",
        "torch 2.8.0+cpu",
        "expected Float but got Double, float32",
        "\x1b[31mred\x1b[0m",
        "^^^^^",
        "args[0]: TensorBox(StorageBox(",
        "tensor([s0, 3], dtype=torch.int64)",
        "<n>",
        "'",
        "((",
        "\n\n",
    ]
)
_TEXTS = st.lists(st.one_of(_PIECES, st.text(max_size=12)), max_size=8).map(" ".join) | st.lists(_PIECES).map("\n".join)


@given(_TEXTS)
def test_normalize_is_idempotent(text: str) -> None:
    once = normalize(text)
    assert normalize(once) == once


@given(_TEXTS)
def test_any_text_is_normalized_to_a_bounded_length(text: str) -> None:
    assert len(normalize(text * 40)) <= LONGEST


def _message(numbers: list[int], name: str) -> str:
    a, b, c, address = numbers
    return (
        f"Dynamo failed to run FX node: call_method view(*(FakeTensor(..., size=({a}, {b})), {c}), **{{}}): got "
        f"RuntimeError(\"shape '[{a}, {b}]' is invalid for input of size {c}\") at {hex(address)} for buf{a} in "
        f"'{name}'\n\nfrom user code:\n   File \"/tmp/{name}.py\", line {b}, in {name}\n    return x.view({a}, {b})\n\n"
        "Set TORCHDYNAMO_VERBOSE=1 for the internal stack trace\n"
    )


@given(
    st.lists(st.integers(0, 10**6), min_size=4, max_size=4),
    st.lists(st.integers(0, 10**6), min_size=4, max_size=4),
    st.from_regex(r"[a-z]{1,8}", fullmatch=True),
    st.from_regex(r"[a-z]{1,8}", fullmatch=True),
)
def test_shapes_lines_addresses_and_names_are_removed(
    left: list[int], right: list[int], name: str, renamed: str
) -> None:
    assert normalize(_message(left, name), {name}) == normalize(_message(right, renamed), {renamed})


@pytest.mark.parametrize(
    ("message", "left"),
    [
        ("Node redefined name aot0_primals_1!", "Node redefined name aot#!"),
        ("expected dtype torch.float32 but got torch.float16", "expected dtype torch.float32 but got torch.float16"),
        ("KeyError: L['self'].layers[3].weight is gone", "KeyError: <name> is gone"),
        ("cannot open /usr/lib/x86/libfoo.so", "cannot open <path>"),
        ("needs torch 2.8.0+cpu or newer", "needs torch <version> or newer"),
        (
            "'InstructionTranslator' object has no attribute 'parent'",
            "'InstructionTranslator' object has no attribute 'parent'",
        ),
        ("size=torch.Size([2, 3, s0])", "size=<shape>"),
    ],
)
def test_each_kind_of_noise(message: str, left: str) -> None:
    assert normalize(message) == left


def test_only_the_first_compiler_error_is_kept() -> None:
    output = (
        "CppCompileError: C++ compile error\n\nCommand:\ng++ /tmp/a/b.cpp -o /tmp/a/b.so\n\nOutput:\n"
        "/tmp/a/b.cpp:7:12: error: no matching function for call to 'transpose_mxn'\n"
        "/tmp/a/b.cpp:9:1: error: expected ';'\n"
    )
    assert (
        normalize(output)
        == "CppCompileError: C++ compile error error: no matching function for call to 'transpose_mxn'"
    )


def test_a_message_of_advice_alone_is_kept() -> None:
    assert normalize("Set TORCH_LOGS for more")


def test_two_different_bugs_keep_different_words() -> None:
    first = keywords(normalize("specifying inputs= with .backward() not yet implemented for compiled autograd"))
    second = keywords(normalize("Node redefined name aot0_primals_1!"))
    assert common_share(first, second) == 0


@given(st.frozensets(st.text(max_size=3)), st.frozensets(st.text(max_size=3)))
def test_similarities_are_symmetric_and_between_0_and_1(left: frozenset[str], right: frozenset[str]) -> None:
    for share in (common_share, jaccard):
        assert 0 <= share(left, right) == share(right, left) <= 1
    assert jaccard(left, left) == 1
