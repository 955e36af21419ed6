"""Retries: their waits, their messages, and the error after the last try."""

from __future__ import annotations

import pytest

from torchbisect.containers.process.run_command import Cancelled
from torchbisect.core.errors import IndexUnreachable
from torchbisect.core.retry import (
    RetryPolicy,
    Transient,
    is_transient_status,
    raise_for_transient_status,
    retry_transient,
)


def test_waits_grow_up_to_the_limit_and_each_is_reported() -> None:
    waits: list[float] = []
    said: list[str] = []
    answers = iter([*[Transient("no route")] * 5, "answer"])

    def ask() -> str:
        told = next(answers)
        if isinstance(told, Transient):
            raise told
        return told

    retry = RetryPolicy(first_wait=1.0, longest_wait=6.0, total=60.0)
    assert retry_transient(ask, "the index", notify=said.append, retry=retry, wait=waits.append) == "answer"
    assert waits == [1.0, 2.0, 4.0, 6.0, 6.0]
    assert said[0] == "the index did not answer (no route): next try in 1 s"
    assert len(said) == len(waits)


def test_retries_end_with_an_error() -> None:
    def ask() -> None:
        raise Transient("no route")

    with pytest.raises(IndexUnreachable, match=r"the index did not answer \(no route\).*same command goes on"):
        retry_transient(ask, "the index", retry=RetryPolicy(0.001, 0.001, 0.02))


def test_other_errors_are_raised_at_once() -> None:
    asked = []

    def ask() -> None:
        asked.append(1)
        raise KeyError("x")

    with pytest.raises(KeyError):
        retry_transient(ask, "the index")
    assert len(asked) == 1


def test_a_wait_can_be_cancelled() -> None:
    def ask() -> None:
        raise Transient("no route")

    def wait(seconds: float) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        retry_transient(ask, "the index", wait=wait)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 599])
def test_transient_statuses(status: int) -> None:
    assert is_transient_status(status)
    with pytest.raises(Transient, match=f"HTTP status {status}"):
        raise_for_transient_status(status)


@pytest.mark.parametrize("status", [200, 206, 301, 400, 401, 403, 404, 410, 416, 451])
def test_final_statuses(status: int) -> None:
    assert not is_transient_status(status)
    raise_for_transient_status(status)
