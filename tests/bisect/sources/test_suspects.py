"""The order of suspects, and their reasons."""

from __future__ import annotations

from pytorch_clone import Clone

from torchbisect.bisect.sources.history import History
from torchbisect.bisect.sources.suspects import changed_versions, rank_suspects
from torchbisect.containers.environment import Facts


def test_suspects_have_reasons_and_reverted_commits_come_last(clone: Clone, history: History) -> None:
    between = history.between(clone.shas[0], clone.shas[5])
    by_stack = rank_suspects(between, "module: dynamo", ["torch/_dynamo/a.py"], ["setitem"])
    assert by_stack[0].commit.sha == clone.shas[1]
    assert by_stack[0].reasons == (
        "touches torch/_dynamo/a.py, in the failing stack",
        "its subject names the stage",
        "its subject names setitem",
    )
    by_stage = rank_suspects(between, "module: inductor")
    assert by_stage[0].commit.is_revert
    reverted = next(suspect for suspect in by_stage if suspect.commit.sha == clone.shas[2])
    assert reverted.score == 1
    assert reverted.reasons[-1] == "but it was reverted within the range"
    assert by_stage[-1].commit.sha == clone.shas[5]


def test_versions_that_differ_besides_torch() -> None:
    old, new = Facts("2.8.0", "a", "3.11.7", "x", "12.8", "3.4.0"), Facts("2.9.0", "b", "3.11.7", "x", "12.8", "3.5.0")
    assert [str(change) for change in changed_versions(old, new)] == ["triton went from 3.4.0 to 3.5.0"]


def test_a_build_for_the_cpu_lacks_no_dependency_of_a_build_for_cuda() -> None:
    cpu, cuda = Facts("2.8.0+cpu", "a", "3.11.7", "x"), Facts("2.9.0", "b", "3.11.7", "x", "12.8", "3.5.0")
    assert changed_versions(cpu, cuda) == changed_versions(cuda, cpu) == ()
