"""The conditions found for a mismatch, with random oracles and with known ones."""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torchbisect.core.repro import Repro
from torchbisect.core.verdict import Answer, Verdict
from torchbisect.minimizer.explain.conditions import find_conditions
from torchbisect.minimizer.explain.neighbors import changed, properties
from torchbisect.probe.oracle import Question
from torchbisect.probe.probe import Probe

SOURCE = """import torch

@torch.compile(backend='eager')
def f(x, y):
    return x[:, [0]] * 3 + y

f(torch.ones(2, 3, requires_grad=True), torch.randn(2, 1))
"""


def truth(holds: Callable[[str], bool]) -> Callable[[str], Verdict]:
    return lambda source: Verdict(Answer.SAME if holds(source) else Answer.NONE)


def test_every_neighbor_is_a_different_valid_script() -> None:
    seen = {ast.unparse(ast.parse(SOURCE)) + "\n"}
    for one in properties(SOURCE):
        assert one.variants
        for change in one.variants.values():
            text = changed(SOURCE, [change])
            ast.parse(text)
            assert text not in seen
            seen.add(text)
    kinds = {one.kind for one in properties(SOURCE)}
    assert kinds == {"dtype", "requires_grad", "contiguity", "size", "grad mode", "dynamic", "constant"}


def test_changes_are_independent_of_each_other() -> None:
    changes = [next(iter(one.variants.values())) for one in properties(SOURCE)]
    text = changed(SOURCE, changes)
    assert text.count("select(-1, 0)") == 2
    assert "torch.ones(1, 1, dtype=torch.float64, requires_grad=False)" in text
    assert "dynamic=True" in text
    assert "set_grad_enabled(False)" in text


def test_necessary_properties_and_properties_that_do_not_matter() -> None:
    found = find_conditions(SOURCE, truth(lambda text: "requires_grad=True" in text and "set_grad" not in text))
    necessary = [one for one in found if one.necessary]
    assert len(necessary) == 2
    assert "torch.ones(2, 3, requires_grad=True) needs requires_grad=True" in [one.description for one in necessary]
    for one in necessary:
        assert one.tried > 1, "asked together with other changes too"
        assert one.shown == 0
    for one in found:
        if not one.necessary:
            assert "does not matter" in one.description
            assert one.shown == one.tried > 0


def test_the_required_sizes_and_dtypes() -> None:
    def holds(text: str) -> bool:
        ones = next(node for node in ast.walk(ast.parse(text)) if ast.unparse(node).startswith("torch.ones("))
        assert isinstance(ones, ast.Call)
        rows = ones.args[0]
        assert isinstance(rows, ast.Constant)
        return int(str(rows.value)) >= 2 and not any(word in ast.unparse(ones) for word in ("int", "bool", "complex"))

    words = " | ".join(one.description for one in find_conditions(SOURCE, truth(holds)) if one.necessary)
    assert "size 0 of torch.ones(2, 3, requires_grad=True) needs to be at least 2 (not 1)" in words
    assert "needs to be any float dtype (not complex64, int64, int32, bool)" in words


def test_without_evidence_there_is_no_condition() -> None:
    assert find_conditions(SOURCE, lambda _: Verdict(Answer.UNTESTABLE, "fails-in-eager")) == ()
    assert find_conditions(SOURCE, lambda _: Verdict(Answer.OTHER, "raises")) == ()


@pytest.mark.slow
@given(st.integers(0, 2**32), st.floats(0.1, 0.9))
@settings(suppress_health_check=[HealthCheck.nested_given], max_examples=20)
def test_every_condition_agrees_with_the_runs(seed: int, share: float) -> None:
    """No property is called necessary if a run without it showed the mismatch."""
    answers: dict[str, bool] = {}

    def ask(text: str) -> Verdict:
        assert text not in answers, "asked twice"
        answers[text] = hash((seed, text)) % 1000 < share * 1000
        return Verdict(Answer.SAME if answers[text] else Answer.NONE)

    found = find_conditions(SOURCE, ask)
    assert sum(answers.values()) >= max((one.shown for one in found), default=0)
    for one in found:
        assert 0 <= one.shown <= one.tried
        assert not (one.necessary and one.shown)
        assert one.tried


def test_a_second_survey_asks_the_same_questions() -> None:
    first: list[str] = []
    second: list[str] = []

    def into(kept: list[str]) -> Callable[[str], Verdict]:
        def ask(text: str) -> Verdict:
            kept.append(text)
            return Verdict(Answer.NONE)

        return ask

    find_conditions(SOURCE, into(first))
    find_conditions(SOURCE, into(second))
    assert first == second


SCRIPT_WITH_CONDITIONS = """import torch

@torch.compile(backend='eager')
def f(x):
    wrong = torch.compiler.is_compiling() and x.requires_grad and x.shape[0] > 2 and x.is_floating_point()
    return x * (3 if wrong else 2)

f(torch.ones(4, requires_grad=True))
"""


@pytest.mark.torch
@pytest.mark.long
def test_the_conditions_of_a_mismatch_of_the_installed_torch(probe: Probe) -> None:
    mismatch = probe.mismatch(Repro(SCRIPT_WITH_CONDITIONS))
    assert mismatch is not None
    found = find_conditions(SCRIPT_WITH_CONDITIONS, lambda text: probe.ask(Question(Repro(text), mismatch.signature)))
    necessary = {one.description: one for one in found if one.necessary}
    tensor = "torch.ones(4, requires_grad=True)"
    assert f"{tensor} needs requires_grad=True" in necessary
    assert f"size 0 of {tensor} needs to be at least 3 (not 1, 2)" in necessary
    harmless = [one.description for one in found if not one.necessary]
    assert f"the dtype of {tensor} needs to be any float dtype (not complex64)" in necessary
    assert any(words.startswith(f"the memory of {tensor} does not matter") for words in harmless)
    for one in necessary.values():
        assert one.tried > one.shown == 0


def test_the_run_time_of_the_questions_is_limited() -> None:
    asked = []

    def ask(text: str) -> Verdict:
        asked.append(text)
        return Verdict(Answer.NONE, seconds=50.0)

    find_conditions(SOURCE, ask)
    assert len(asked) == 3
