"""Threads that parse at once do not disturb each other."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from torchbisect.core.python_text import parse_expression, parse_python

BODY = "".join(f"    x = [x + {number}, (x, {{'a': x * {number}}})]\n" for number in range(150))


class Ring:
    """What the collector of garbage finds, and runs Python for, in the midst of whatever makes objects."""

    def __init__(self) -> None:
        self.own = self

    def __del__(self) -> None:
        sum(range(50))


@pytest.fixture
def frequent_switches() -> Iterator[None]:
    """Collect garbage, and let another thread go on, as often as can be."""
    threshold, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(50)
    sys.setswitchinterval(1e-6)
    yield
    gc.set_threshold(*threshold)
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("frequent_switches")
def test_threads_parse_at_once() -> None:
    def statements(_: int) -> int:
        Ring()
        return len(parse_python(f"def f(x):\n{BODY}").body[0].body)  # type: ignore[attr-defined]

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(statements, range(100))) == {150}


def test_an_expression_is_no_statement() -> None:
    assert parse_expression("1 + x").lineno == 1
    with pytest.raises(SyntaxError):
        parse_expression("x = 1")
