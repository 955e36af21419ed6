"""Two runs take turns by their pipes, and none waits for a partner that has ended."""

from __future__ import annotations

import pytest

from torchbisect.probe.agent.run.measured_run import Turns
from torchbisect.probe.measure.turns import in_turns


def test_each_has_every_second_turn() -> None:
    order: list[str] = []

    def run(name: str, pipes: list[str]) -> str:
        turns = Turns(pipes)
        for _ in range(8):
            with turns:
                order.append(name)
        return name

    assert in_turns(lambda pipes: run("a", pipes), lambda pipes: run("b", pipes)) == ("a", "b")
    assert order == ["a", "b"] * 8


def test_a_run_whose_partner_ended_goes_on() -> None:
    turned = []

    def run(pipes: list[str]) -> None:
        turns = Turns(pipes)
        for number in range(8):
            with turns:
                turned.append(number)

    def fails(pipes: list[str]) -> None:
        raise ValueError("no turn was taken")

    with pytest.raises(ValueError, match="no turn"):
        in_turns(fails, run)
    assert turned == list(range(8))


def test_alone_nothing_is_waited_for() -> None:
    with Turns(None):
        pass
