"""The form in which a measured script is shrunk: with a call of its function ``benchmark``.

A measured script defines ``benchmark`` and leaves it to the tool to call it. To the minimizer that is a function that
nothing uses and no trace has seen. So the script is shrunk with a call at its end, which every candidate keeps where
that function is what was timed; where the number is another one, the call may be inlined as any other.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, replace

from torchbisect.core.python_text import parse_python
from torchbisect.minimizer.minimize import Reduction, with_source
from torchbisect.minimizer.syntax.tree import Function
from torchbisect.probe.agent.run.measured_run import BENCHMARK, BENCHMARKED
from torchbisect.probe.limits import Limits
from torchbisect.probe.oracle import Oracle, Question

_CALL = f"{BENCHMARK}()"


@dataclass(frozen=True)
class MeasuredForm:
    """The form of a measured script while it is shrunk.

    Attributes:
        limits: the limits of its candidates.
        timed: a call of the script's own ``benchmark()`` is what was timed.
    """

    limits: Limits
    timed: bool

    @classmethod
    def of(cls, limits: Limits, original: Question) -> MeasuredForm:
        """Return the form for candidates with these limits of a script that was measured."""
        return cls(limits, original.signature.place == BENCHMARKED)

    def form(self, oracle: Oracle, question: Question) -> str:
        """Return the script with a call of its ``benchmark()``, or unchanged if that is not worse."""
        source = question.repro.source
        text = with_call(source)
        called = text is not None and oracle.ask(replace(question.with_source(text), limits=self.limits)).same
        return text if text is not None and called else source

    def accepts(self, text: str) -> Callable[[str], bool]:
        """Return a function that tells whether a form of a text still has what was timed."""
        kept = self.timed and ends_with_call(text)
        return lambda candidate: not kept or ends_with_call(candidate)

    def finished(self, oracle: Oracle, question: Question, reduction: Reduction) -> Reduction:
        """Return the reduction without the call at its end, if it is worse without that too."""
        if not self.timed or not ends_with_call(reduction.source):
            return reduction
        text = without_call(reduction.source)
        if not oracle.ask(replace(question.with_source(text), limits=self.limits)).same:
            return reduction
        return with_source(reduction, text)


def with_call(source: str) -> str | None:
    """Return a script with a call of its function ``benchmark`` at the end; ``None`` if it has no such function.

    >>> with_call("def benchmark():\\n    work()")
    'def benchmark():\\n    work()\\n\\n\\nbenchmark()\\n'
    """
    defined = any(isinstance(node, Function) and node.name == BENCHMARK for node in parse_python(source).body)
    if not defined or ends_with_call(source):
        return None
    return f"{source.rstrip()}\n\n\n{_CALL}\n"


def ends_with_call(source: str) -> bool:
    """Return True if a script defines ``benchmark`` and calls it at its end."""
    lines = source.split()
    return lines[-1:] == [_CALL] and any(word.startswith(f"{BENCHMARK}(") for word in lines[:-1])


def without_call(source: str) -> str:
    """Return a script that ends with this call without it."""
    tree = parse_python(source)
    last = tree.body[-1]
    assert isinstance(last, ast.Expr)
    return "".join(source.splitlines(keepends=True)[: last.lineno - 1]).rstrip() + "\n"
