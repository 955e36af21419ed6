"""The trace of a script's eager run as the minimizer reads it: its calls, and text that rebuilds their values.

The agent's ``tracing`` module writes the JSON that ``Trace.from_json`` reads; the two change together.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from torchbisect.core.decode import decode


@dataclass(frozen=True)
class Argument:
    """One argument of a recorded call.

    Attributes:
        name: the parameter's name; entries of ``*args`` and ``**kwargs`` are named ``*0``, ``*1``, ``**key``.
        text: an expression that rebuilds the value in a fresh script (``torch.randn(2, 3)``, ``Config(width=4)``,
            ``0.5``), or ``None`` if there is none. Tensors are rebuilt by shape, dtype, stride and ``requires_grad``.
            Small tensors that do not look random are rebuilt by value.
        exact: whether the expression rebuilds the same value, and not only one of the same form.
        by_value: an expression of the same numbers where ``text`` draws others; ``None`` if they are too many, or the
            call is not the outermost that is compiled.
    """

    name: str
    text: str | None
    exact: bool
    by_value: str | None = None


@dataclass(frozen=True)
class Call:
    """One call of a function, method or module that the script defines, or of a torch.nn module that it compiles.

    Attributes:
        number: the call's place in the order in which calls began.
        parent: the number of the script's call that made it; ``None`` at module level.
        function: the ``__qualname__``: ``train``, ``Net.forward``, ``make.<locals>.f``.
        line: first line of the definition with its decorators, as ``co_firstlineno`` has it.
        arguments: in the order of the parameters, without ``self``.
        owner: the class's name for a method, else ``None``.
        owner_text: an expression that rebuilds ``self``, or ``None``.
        compiled: whether it ran inside a region that the script compiles.
        root: whether it is the function that was passed to ``torch.compile``; for a module, its forward.
        seconds: wall time of the call.
        raised: the built-in class of the exception that ended it, or of its nearest base; empty if it returned.
        attributes: the attributes of ``self`` that the function names, as they were when it was called; an argument
            each.
        differentiable: what follows the call to give a tensor where a backward pass may begin: ``""``, ``[1]``,
            ``['loss']``; several guesses where the result is not known, and none where no tensor requires a gradient.
        root_number: of a root, how many calls of anything that is compiled came before it, recorded or not; this is the
            number in the place of a mismatch, as in ``call 3 output``.
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
    attributes: tuple[Argument, ...] = ()
    differentiable: tuple[str, ...] = ("", "[0]")
    root_number: int | None = None

    def with_values(self) -> Call | None:
        """Return the call on the numbers that it had in the traced run; ``None`` if no more of them are known."""
        given = tuple(replace(item, text=item.by_value or item.text) for item in self.arguments)
        held = tuple(replace(item, text=item.by_value or item.text) for item in self.attributes)
        return (
            replace(self, arguments=given, attributes=held)
            if (given, held) != (self.arguments, self.attributes)
            else None
        )


@dataclass(frozen=True)
class Value:
    """Last value that an assignment on a line of the script gave to a name; ``text`` and ``exact`` as for an argument.

    Attributes:
        line: the last line of the assignment.
        function: the qualified name of the scope; ``<module>`` at module level.
        name: the name, or a dotted ``self.x``.
    """

    line: int
    function: str
    name: str
    text: str
    exact: bool


@dataclass(frozen=True)
class ExpressionValue:
    """First value of an expression of the script, found by its place; ``exact`` also means that it had no other."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str
    exact: bool


@dataclass(frozen=True)
class Iteration:
    """The values that the variables of the loop on a line had in one iteration; ``None`` where there is no text.

    The iteration is the one of this ``number``, from 0, of the ``count`` that the loop had in the whole run.
    """

    line: int
    function: str
    names: tuple[str, ...]
    texts: tuple[str | None, ...]
    number: int = 0
    count: int = 0


@dataclass(frozen=True)
class Trace:
    """Record of one eager run: the script's calls, and the values of assigned names.

    The calls are in the order they began, at most a fixed number for each function. ``reads`` has the attributes that
    statements read, by their path such as ``config.width``, and the globals that functions read, if they had one value.
    Of each loop a few ``iterations`` are kept, those that ran most of its body first.
    """

    calls: tuple[Call, ...]
    values: tuple[Value, ...]
    reads: tuple[Value, ...] = ()
    expressions: tuple[ExpressionValue, ...] = ()
    iterations: tuple[Iteration, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the JSON that ``from_json`` reads."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Any) -> Trace:
        """Read the JSON that the agent wrote. Raise ``DecodeError`` if it has another shape."""
        return decode(cls, data, "trace")
