"""Several questions at once to one torch: the answers are those of one after the other, and nothing is left behind."""

from __future__ import annotations

from collections.abc import Iterator

import psutil
import pytest

from torchbisect.containers.environment import Environment
from torchbisect.core.repro import Repro
from torchbisect.core.verdict import Answer, Verdict
from torchbisect.probe.journal import Journal
from torchbisect.probe.judge.matching import Strictness
from torchbisect.probe.oracle import Oracle, Question
from torchbisect.probe.pool import Pool
from torchbisect.probe.probe import Probe
from torchbisect.probe.probe_options import ProbeOptions

pytestmark = pytest.mark.torch

# A bug of torch 2.13: a deque without room keeps what is put in.
SOURCE = """\
import collections, time, torch
def count(x):
    recent = collections.deque([1, 2, 3], maxlen={length})
    recent.append(4)
    return x * len(recent)
time.sleep({pause})
torch.compile(count, backend="eager")(torch.ones(2))
"""


@pytest.fixture
def probe(environment: Environment) -> Iterator[Probe]:
    with Probe(environment, Journal(), ProbeOptions(check_every=0)) as probe:
        yield probe


def questions(probe: Probe, *lengths: int, pause: float = 0.0) -> list[Question]:
    """About the wrong script, with decks of these lengths: those without room show the bug."""
    found = probe.mismatch(Repro(SOURCE.format(length=0, pause=0)))
    assert found is not None
    texts = [SOURCE.format(length=length, pause=pause) + f"# {number}" for number, length in enumerate(lengths)]
    return [Question(Repro(text), found.signature, strictness=Strictness.STRICT) for text in texts]


def test_each_question_gets_its_own_answer(probe: Probe) -> None:
    lengths = (0, 2, 0, 1, 3, 0, 2, 2)
    asked = questions(probe, *lengths)
    with Pool(probe, 3) as pool:
        answers = []
        for number, question in enumerate(asked):
            pool.expect(asked[number + 1 :])
            answers.append(pool.ask(question).answer)
    assert answers == [Answer.NONE if length else Answer.SAME for length in lengths]
    before = probe.asked
    assert [probe.ask(question).answer for question in asked] == answers
    assert probe.asked == before  # the journal knows them


@pytest.mark.long
def test_expected_questions_are_asked_ahead_and_journalled(probe: Probe) -> None:
    second, third = questions(probe, 2, 3, pause=2.0)
    with Pool(probe, 2) as pool:
        for future in pool._starting:
            future.result()
        pool.expect([third])
        pool.ask(second)
        assert pool._begun[third].result().answer is Answer.NONE
    before = probe.asked
    assert probe.ask(third).answer is Answer.NONE
    assert probe.asked == before  # the journal knows it


class Broken(Exception):
    """An error of the oracle."""


def test_errors_of_questions_that_were_only_expected_are_dropped(probe: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = questions(probe, 2, 3)
    honest = Probe.ask

    def ask(self: Probe, question: Question) -> Verdict:
        if question == second:
            raise Broken
        return honest(self, question)

    monkeypatch.setattr(Probe, "ask", ask)
    with Pool(probe, 2) as pool:
        pool.expect([second])
        assert pool.ask(first).answer is Answer.NONE
        with pytest.raises(Broken):
            pool.ask(second)


@pytest.mark.parametrize("error", [None, pytest.param(KeyboardInterrupt, marks=pytest.mark.long)])
def test_an_idle_agent_serves_the_next_pool_and_every_other_one_ends(
    probe: Probe, error: type[BaseException] | None
) -> None:
    first, endless = questions(probe, 2, 2)
    endless = endless.with_source(SOURCE.format(length=2, pause=40))
    before = {child.pid for child in psutil.Process().children()}

    def use(oracle: Oracle) -> None:
        with Pool(oracle, 2) as pool:
            for future in pool._starting:
                future.result()
            if error is not None:
                pool._begin(endless)
                pool._begin(endless.with_source(endless.repro.source + "#"))
            pool.ask(first) if error is None else None
            if error is not None:
                raise error

    if error is None:
        use(probe)
    else:
        with pytest.raises(error):
            use(probe)
    left = {child.pid for child in psutil.Process().children()} - before
    assert len(left) == (error is None)
    if error is None:
        use(probe)
        assert {child.pid for child in psutil.Process().children()} - before == left
        probe.close()
        assert not {child.pid for child in psutil.Process().children()} - before
    assert probe.ask(first).answer is Answer.NONE


def test_a_fresh_process_serves_the_next_pool_although_the_pool_ends_at_its_answer(
    probe: Probe, environment: Environment
) -> None:
    (question,) = questions(probe, 2)
    before = {child.pid for child in psutil.Process().children()}
    for _ in range(3):
        probe.prepare_fresh_process(question.repro)
        with Pool(probe, 2, lambda helper: helper.ask_in_fresh_process(question)) as pool:
            assert pool.first.result().answer is Answer.NONE
        assert len({child.pid for child in psutil.Process().children()} - before) == 1
