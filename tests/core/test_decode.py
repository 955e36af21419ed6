"""Reading of JSON from outside: bounded, checked, and with one kind of error."""

from __future__ import annotations

import json
import math
import time
import tracemalloc
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchbisect.core.decode import DecodeError, JsonLimits, decode, read_json, read_object
from torchbisect.core.trace import Trace
from torchbisect.reports.model.json_codec import encode


@dataclass(frozen=True)
class Leaf:
    name: str
    size: int = 0
    weight: float = 0.0


@dataclass(frozen=True)
class Tree:
    leaves: tuple[Leaf, ...]
    color: Literal["green", "brown"] = "green"
    best: Leaf | None = None
    notes: dict[str, Any] = field(default_factory=dict)
    named: dict[str, Leaf] = field(default_factory=dict)
    old: bool = False


leaves = st.builds(Leaf, st.text(), st.integers(), st.floats(allow_nan=False))
trees = st.builds(
    Tree,
    st.lists(leaves).map(tuple),
    st.sampled_from(["green", "brown"]),
    st.none() | leaves,
    st.dictionaries(st.text(), st.none() | st.integers() | st.text() | st.lists(st.integers())),
    st.dictionaries(st.text(), leaves),
    st.booleans(),
)


@given(trees)
def test_encoded_values_are_decoded_again(tree: Tree) -> None:
    text = json.dumps(encode(tree), allow_nan=False)
    assert decode(Tree, json.loads(text)) == tree


def test_numbers_that_json_lacks_are_read() -> None:
    assert math.isnan(decode(Leaf, {"name": "a", "weight": "nan"}).weight)


@pytest.mark.parametrize(
    ("data", "where"),
    [
        ({}, "report lacks 'leaves'"),
        ({"leaves": {}}, "report.leaves should be a list"),
        ({"leaves": [{"name": 3}]}, "report.leaves[0].name should be a text, not 3"),
        ({"leaves": [{"name": "a", "size": True}]}, "report.leaves[0].size should be a whole number, not True"),
        ({"leaves": [], "color": "blue"}, "report.color should be one of 'green', 'brown'"),
        ({"leaves": [], "old": 1}, "report.old should be true or false"),
        ({"leaves": [], "named": {"x": None}}, "report.named.x should be an object"),
        ({"leaves": [{"name": "a", "weight": 10**400}]}, "report.leaves[0].weight should be a number"),
        ([], "report should be an object"),
    ],
)
def test_an_error_names_the_path_of_a_wrong_value(data: Any, where: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(Tree, data)
    assert where in str(caught.value)


def test_unknown_keys_are_ignored() -> None:
    assert decode(Leaf, {"name": "a", "height": 3}) == Leaf("a")


MANY = 3_000_000


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[1] [2]", "not JSON"),
        ("\x00", "not JSON"),
        (b"\xff\xfe", "not UTF-8"),
        ("[1]".encode("utf-16"), "not UTF-8"),
        ('"\udcff'.encode("utf-8", "surrogatepass"), "not UTF-8"),
        ("[" * 200_000, "inside each other"),
        ("[" * 101 + "]" * 101, "inside each other"),
        ('{"a":' * 200_000 + "1" + "}" * 200_000, "inside each other"),
        ('["\\\\",' + "[" * 101, "inside each other"),
        ('["\\"",' + "[" * 101, "inside each other"),
        ("[" + "1," * MANY + "1]", "values"),
        ("[" + "[]," * MANY + "1]", "values"),
        ("[" + '"",' * MANY + "1]", "values"),
        ("]" * (MANY + 1), "values"),
        ("9" * 5000, "digits"),
        ("[-" + "9" * 41 + "]", "digits"),
        ("1e400", "too large"),
        ("[-1e999]", "too large"),
        ('{"a": 1, "a": 2}', "twice"),
        ('{"a": 1, "\\u0061": 2}', "twice"),
        ("x" * (65 << 20), "bytes"),
    ],
)
def test_a_text_that_is_refused(text: str | bytes, says: str) -> None:
    started = time.monotonic()
    with pytest.raises(DecodeError, match=says) as caught:
        read_json(text)
    assert len(str(caught.value)) < 200
    assert time.monotonic() - started < 5


@pytest.mark.slow
def test_the_memory_of_a_text_that_is_refused() -> None:
    """No text of the largest size that is read takes more than a few times its own size."""
    for text in (b"[" + b"{}," * (20 << 20), b'"",' * (16 << 20), b'"a"b' * (15 << 20), b'\\"' * (30 << 20)):
        tracemalloc.start()
        with pytest.raises(DecodeError):
            read_json(text)
        assert tracemalloc.get_traced_memory()[1] < 400 << 20
        tracemalloc.stop()


_PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=30,
)


@given(_PLAIN, st.booleans(), st.sampled_from([None, 2]))
def test_every_json_text_is_read(value: Any, ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert read_json(text) == read_json(text.encode()) == value


@given(_PLAIN)
def test_limits_are_exact(value: Any) -> None:
    def depth(part: Any) -> int:
        parts = part.values() if isinstance(part, dict) else part if isinstance(part, list) else None
        return 0 if parts is None else 1 + max(map(depth, parts), default=0)

    text = json.dumps(value)
    assert read_json(text, JsonLimits(depth=depth(value))) == value
    if depth(value):
        with pytest.raises(DecodeError, match="inside each other"):
            read_json(text, JsonLimits(depth=depth(value) - 1))


def test_characters_that_could_not_be_printed() -> None:
    assert read_json('["\\udcff", {"\\uD800x": "\\ud83d\\ude00"}]') == ["\\udcff", {"\\ud800x": "\U0001f600"}]
    assert read_json('"\ud800"') == "\\ud800"


def test_an_object_is_expected() -> None:
    assert read_object('{"a": 1}') == {"a": 1}
    for text in ("[1]", "null", "3", '"a"'):
        with pytest.raises(DecodeError, match="an object"):
            read_object(text)


def test_a_key_cannot_break_an_error_line() -> None:
    with pytest.raises(DecodeError) as caught:
        decode(Tree, {"leaves": [], "named": {"\x1b[31m\n" + "x" * 10**6: 3}})
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "data",
    [
        {"calls": {}, "values": []},
        {"calls": [[1]], "values": []},
        {"calls": [{"number": "1"}], "values": []},
        {"calls": [], "values": [{"line": 1, "function": "f", "name": "x", "text": 3, "exact": True}]},
        {"calls": []},
        None,
        [],
    ],
)
def test_a_trace_of_another_shape(data: Any) -> None:
    with pytest.raises(DecodeError):
        Trace.from_json(data)


def test_a_trace_is_read_again() -> None:
    value = {"line": 1, "function": "f", "name": "x", "text": "3", "exact": True}
    trace = Trace.from_json({"calls": [], "values": [value]})
    assert trace.values[0].text == "3"
    assert Trace.from_json(trace.to_json()) == trace
