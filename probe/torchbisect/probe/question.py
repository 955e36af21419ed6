"""The one question, as a value: does this script, compiled like this, still show this mismatch?"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from torchbisect.core.repro import Repro, Settings
from torchbisect.probe.judge.matching import Strictness
from torchbisect.probe.judge.signature import Signature


@dataclass(frozen=True)
class Question:
    """What is asked about an environment.

    Attributes:
        repro: the script.
        signature: the mismatch that counts.
        settings: what the script is compiled with; its own choices if left out.
        strictness: how much of the signature has to be there: all, while one script is shrunk on one build; less
            across builds, whose internals are refactored between them.
        finishes: without ``torch.compile`` the script comes to its end. A text of which that isn't true is no
            evidence then, and is not run compiled.
        reuse: one of many candidates, most of which compile the same graphs: what inductor made for one of them may
            serve the next. It changes the time that an answer takes, and no answer.
    """

    repro: Repro
    signature: Signature
    settings: Settings = field(default_factory=Settings)
    strictness: Strictness = Strictness.STRICT
    finishes: bool = False
    reuse: bool = False

    def about(self, source: str) -> Question:
        """The same question about another text of the script."""
        return replace(self, repro=self.repro.with_source(source))
