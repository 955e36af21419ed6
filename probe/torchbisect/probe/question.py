"""The one question, as a value: does this script, with these settings, still show this mismatch?"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from torchbisect.core.repro import Repro, Settings
from torchbisect.probe.judge.matching import Strictness
from torchbisect.probe.judge.signature import Signature


@dataclass(frozen=True)
class Question:
    """A question about an environment.

    Attributes:
        repro: the script.
        signature: the mismatch that counts.
        settings: the settings of ``torch.compile``; the script's own choices if left out.
        strictness: how much of the signature must match. ``STRICT`` while a script is shrunk on one build;
            ``TOLERANT`` across builds, whose internals are refactored between them.
        eager_must_succeed: a script that fails without ``torch.compile`` is no evidence, and is not run compiled.
        reuse_kernels: what inductor compiled for one candidate may serve the next one, because most candidates
            compile the same graphs. It changes the time that an answer takes, and no answer.
    """

    repro: Repro
    signature: Signature
    settings: Settings = field(default_factory=Settings)
    strictness: Strictness = Strictness.STRICT
    eager_must_succeed: bool = False
    reuse_kernels: bool = False

    def with_source(self, source: str) -> Question:
        """Return the same question about another text of the script."""
        return replace(self, repro=self.repro.with_source(source))
