"""Which part is named for a script that exports a module or compiles it ahead of time."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from answer_table import MISMATCH

from torchbisect.core.repro import Repro
from torchbisect.core.verdict import Answer, Verdict
from torchbisect.probe.localize.backends import localize
from torchbisect.probe.oracle import Question

EXPORT = "program = torch.export.export(model, inputs)\n"
AHEAD = EXPORT + "path = torch._inductor.aoti_compile_and_package(program)\n"
LIBRARY = EXPORT + "path = torch._inductor.aot_compile(program.module(), inputs)\n"


class Answers:
    """Answers that a mismatch shows with some backends only, and keeps the backends that it was asked for."""

    def __init__(self, showing: Sequence[str]) -> None:
        self.showing = showing
        self.asked: list[str | None] = []

    def ask(self, question: Question) -> Verdict:
        self.asked.append(question.settings.backend)
        return Verdict(Answer.SAME if question.settings.backend in self.showing else Answer.NONE)


@pytest.mark.parametrize(
    ("source", "showing", "component", "backend", "asked"),
    [
        (EXPORT, (), "export", None, []),
        (AHEAD, ("eager", "inductor"), "export", "eager", ["eager"]),
        (AHEAD, ("inductor",), "inductor", "inductor", ["eager", "inductor"]),
        (LIBRARY, ("inductor",), "inductor", "inductor", ["eager", "inductor"]),
        (AHEAD, (), None, None, ["eager", "inductor"]),
    ],
)
def test_the_part_at_fault(
    source: str, showing: Sequence[str], component: str | None, backend: str | None, asked: list[str]
) -> None:
    answers = Answers(showing)
    found = localize(answers, Repro(source), MISMATCH)
    assert (found.component, found.backend, answers.asked) == (component, backend, asked)


def test_a_script_that_also_calls_torch_compile_is_asked_with_its_backends() -> None:
    answers = Answers(("aot_eager",))
    found = localize(answers, Repro(AHEAD + "torch.compile(model)(x)\n"), MISMATCH)
    assert (found.component, found.backend) == ("pt2-dispatcher", "aot_eager")
