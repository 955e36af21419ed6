"""Work that is begun before its result is needed."""

from __future__ import annotations

import threading

import pytest

from torchbisect.pipeline.background import Background


def test_an_action_that_was_begun_runs_once_and_its_result_is_taken() -> None:
    ran = list[str]()
    with Background(1) as background:
        background.begin("key", lambda: ran.append("begun") or 1)
        background.begin("key", lambda: ran.append("begun again") or 2)
        assert background.result("key", lambda: ran.append("asked") or 3) == 1
    assert ran == ["begun"]


def test_an_action_that_still_waits_for_a_worker_is_done_at_once() -> None:
    release, ran = threading.Event(), list[str]()
    with Background(1) as background:
        background.begin("long", release.wait)
        background.begin("short", lambda: ran.append("in the background"))
        background.result("short", lambda: ran.append("here"))
        assert ran == ["here"]
        release.set()
    assert ran == ["here"]


def test_what_has_not_begun_is_dropped_at_the_end() -> None:
    release, ran = threading.Event(), list[str]()
    background = Background(1)
    background.begin("long", release.wait)
    background.begin("dropped", lambda: ran.append("dropped"))
    threading.Timer(0.05, release.set).start()
    with background:
        pass
    assert ran == []


def test_a_failure_is_raised_where_the_result_is_needed() -> None:
    def fail() -> None:
        raise ValueError("no room")

    with Background(1) as background:
        background.begin("key", fail)
        with pytest.raises(ValueError, match="no room"):
            background.result("key", lambda: None)


def test_without_workers_nothing_is_begun() -> None:
    ran = list[str]()
    with Background(0) as background:
        background.begin("key", lambda: ran.append("begun"))
        assert background.result("key", lambda: "asked") == "asked"
    assert ran == []


def test_an_error_cancels_what_runs() -> None:
    background = Background(1)

    def act() -> None:
        assert background.cancel.wait(10)

    def interrupted() -> None:
        with background:
            background.begin("long", act)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert background.cancel.is_set()
