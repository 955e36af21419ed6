"""Strategies for texts that were valid and are spoiled: torn, doubled, wrong in one place, too deep, too large."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

#: Parts that readers stumble over.
PIECES = (
    "", " ", "\n", "\r", "\t", "\0", "\x1b[31m", "\x1e", "\x1f", "\x85", "\u2028", "\u202e", "\ud800", "\ufeff", "é",
    "²", "٣", "𝟏", "0", "-1", "1e999", "-0.0", "nan", "inf", "NaN", "Infinity", "9" * 41, "9" * 5000, "0x10", "1_0",
    "true", "null", "None", "[", "]", "{", "}", "(", ")", "<", ">", "<a ", "<!--", "-->", "&#", "&#x110000;",
    "'", '"', "'''", "`", "```\n", "~~~", "\\", "\\u", "\\ud800", "\\x00", "#", "%", "$", "*", "/", "//", "://", "..",
    "../", "~", "~root", "~nobody-such", "-", "--", "=", "==", ";", ",", ":", "::", "@", "!", "|", "?", "&", "+",
    "http://[", "https://x:99999/", "file://[", "\\N{", "%s", "%(", "{0}", "${X}", "a" * 300, "[" * 300,
    "{\"a\":" * 120, " " * 300, "a." * 300, "import torch\n", "torch", "2.8.0", "def f(x):\n",
)  # fmt: skip

#: Values of every type, some of them extreme.
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**63, 2**64, 10**38, 1.5, -0.0, 1e308, "", "x", "nan", "\ud800", "\x1b[31m\n",
    "9" * 5000, "a" * 5000, [], [[]], [None], [1], ["x"], {}, {"": None}, {"a": {"a": {"a": []}}}, [[[[[[[[]]]]]]]],
)  # fmt: skip


@st.composite
def spoiled(draw: st.DrawFn, samples: Sequence[str], pieces: Sequence[str] = PIECES) -> str:
    """A sample of which parts are cut out, doubled, moved, or replaced by pieces."""
    text = draw(st.sampled_from(samples))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(text)))
        stop = min(len(text), start + draw(st.sampled_from((0, 0, 1, 1, 2, 5, 20, 100, 10_000))))
        what = draw(st.integers(0, 4))
        part = text[start:stop]
        if what == 0:
            part = ""
        elif what == 1:
            part *= draw(st.sampled_from((2, 3, 50)))
        elif what == 2:
            part = draw(st.text(max_size=8))
        else:
            part = draw(st.sampled_from(pieces)) * draw(st.sampled_from((1, 1, 1, 2, 60)))
        text = (text[:start] + part + text[stop:])[:40_000]
    return text


@st.composite
def spoiled_json(draw: st.DrawFn, samples: Sequence[Any]) -> str:
    """The JSON of a sample in which values are exchanged, left out or doubled; sometimes its text is spoiled too."""
    value = copy.deepcopy(draw(st.sampled_from(samples)))
    for _ in range(draw(st.integers(0, 3))):
        value = _with_change(draw, value)
    text = json.dumps(value, ensure_ascii=draw(st.booleans()))
    return draw(spoiled([text])) if draw(st.integers(0, 3)) == 0 else text


def _with_change(draw: st.DrawFn, value: Any) -> Any:
    """Return a value with one change at a place anywhere in it."""
    if not isinstance(value, (list, dict)) or not value or draw(st.integers(0, 5)) == 0:
        return copy.deepcopy(draw(st.sampled_from(VALUES)))
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = draw(st.sampled_from(keys))
    what = draw(st.integers(0, 7))
    if what == 0:
        del value[key]
    elif what == 1 and isinstance(value, list):
        value += value[:1] * draw(st.sampled_from((1, 3, 50)))
    elif what == 1:
        value[draw(st.sampled_from(("", "x", "schema", "name", "\x1b", "a" * 300)))] = value[key]
    else:
        value[key] = _with_change(draw, value[key])
    return value
