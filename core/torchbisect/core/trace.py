"""What an eager run of a script did, as the minimizer needs it: lines, calls, and what would rebuild their values.

The agent's ``tracing`` module writes the JSON that ``Trace.from_json`` reads; the two change together.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Argument:
    """One argument of a recorded call.

    Attributes:
        name: the parameter's name; ``*args`` and ``**kwargs`` entries are named ``*0``, ``*1``, ``**key``.
        text: an expression that rebuilds the value in a fresh script (``torch.randn(2, 3)``, ``Config(width=4)``,
            ``0.5``), or ``None`` where there is none. Tensors are rebuilt by shape, dtype, stride, ``requires_grad``;
            small tensors that are not random-looking are rebuilt by value.
        exact: the expression rebuilds the same value and not only one of the same form.
    """

    name: str
    text: str | None
    exact: bool


@dataclass(frozen=True)
class Call:
    """One call of a function, method or module that the script itself defines (or a torch.nn module it compiles).

    Attributes:
        number: calls are numbered in the order they began.
        parent: the number of the script's call that made it; ``None`` at module level.
        function: the qualified name as ``__qualname__`` has it: ``train``, ``Net.forward``, ``make.<locals>.f``.
        line: first line of the definition, decorators included, as ``co_firstlineno`` says.
        arguments: in the order of the parameters, ``self`` left out.
        owner: for a method the class's name, else ``None``.
        owner_text: an expression that rebuilds ``self``, or ``None``.
        compiled: whether it ran inside a region that the script compiles.
        root: whether it is itself what was handed to ``torch.compile`` (for a module: its forward).
        seconds: wall time of the call.
        raised: the built-in class of the exception that ended it, or of its nearest base; empty if it returned.
    """

    number: int
    parent: int | None
    function: str
    line: int
    arguments: tuple[Argument, ...]
    owner: str | None
    owner_text: str | None
    compiled: bool
    root: bool
    seconds: float
    raised: str = ""


@dataclass(frozen=True)
class Value:
    """What a plain name held after an assignment on a line of the script ran for the last time.

    Attributes:
        line: the line of the assignment's end.
        function: the qualified name of the scope; ``<module>`` at module level.
        name: the name, or a dotted ``self.x``.
        text: an expression that rebuilds the value.
        exact: the expression rebuilds the same value and not only one of the same form.
    """

    line: int
    function: str
    name: str
    text: str
    exact: bool


@dataclass(frozen=True)
class Trace:
    """What an eager run did.

    Attributes:
        lines: numbers of the script's lines that ran, from 1.
        calls: the calls, in the order they began; a bounded number of each function's.
        values: what assigned names held.
    """

    lines: frozenset[int]
    calls: tuple[Call, ...]
    values: tuple[Value, ...]

    def to_json(self) -> dict[str, Any]:
        """What ``from_json`` reads."""
        return {**asdict(self), "lines": sorted(self.lines)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Trace:
        """Read what the agent wrote. Raises ``KeyError`` or ``TypeError`` if it has another shape."""
        return cls(
            lines=frozenset(data["lines"]),
            calls=tuple(
                Call(**{**call, "arguments": tuple(Argument(**argument) for argument in call["arguments"])})
                for call in data["calls"]
            ),
            values=tuple(Value(**value) for value in data["values"]),
        )
