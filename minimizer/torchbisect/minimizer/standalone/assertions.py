"""Scripts that stand alone: under plain ``python`` they fail where the bug is, and say what differs.

Some mismatches are visible only to an observer, such as a wrong ``requires_grad`` or a number that nobody asserts. They
need an assertion of their own. It follows from the place of the mismatch, but often in more than one way. So this
module returns candidates, the simplest first, and the caller runs them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchbisect.core.python_text import parse_python
from torchbisect.core.verdict import MismatchKind
from torchbisect.minimizer.standalone.eager_comparison import with_eager_comparisons
from torchbisect.minimizer.standalone.exception_assertions import with_expected_exceptions, with_required_exceptions
from torchbisect.minimizer.standalone.named_inputs import with_named_inputs
from torchbisect.minimizer.standalone.value_assertions import ObservedMismatch, with_value_assertions
from torchbisect.minimizer.syntax.tree import format_script

_FAILS_ITSELF = frozenset(
    {
        MismatchKind.CRASH,
        MismatchKind.HANG,
        MismatchKind.RAISES,
        MismatchKind.RAISES_DIFFERENTLY,
        MismatchKind.SLOW,
        MismatchKind.COMMAND,
    }
)
"""Kinds of mismatch that end the script in another way, so that nothing has to be compared."""
_MAX_COMMENT = 60


def standalone_candidates(source: str, mismatch: ObservedMismatch, *, limit: int = 24) -> list[str]:
    """Return scripts that may fail by themselves where the mismatch is, the simplest first.

    The first candidate is the script itself: one that raises or crashes needs no assertion, and the user's own
    assertion is the best one. The caller runs each with plain ``python``. A script stands alone if it exits non-zero on
    the failing build and zero on a passing one.
    """
    found = [source]
    if mismatch.kind in _FAILS_ITSELF:
        found += map(format_script, with_expected_exceptions(parse_python(source), mismatch))
    else:
        found += [with_comment(text, mismatch.eager, mismatch.compiled) for text in _asserting(source, mismatch)]
    return list(dict.fromkeys(found))[:limit]


def with_comment(source: str, eager: str, compiled: str) -> str:
    """Return the script with a comment at its last statement: ``# eager: True, compiled: False``."""
    plain = ["".join(letter if letter.isprintable() else " " for letter in side) for side in (eager, compiled)]
    words = [re.sub(r"\s+", " ", side).strip() for side in plain]
    if not all(words) or any(len(word) > _MAX_COMMENT for word in words):
        return source
    comment = f"  # eager: {words[0]}, compiled: {words[1]}"
    lines = source.rstrip("\n").split("\n")
    last = parse_python(source).body[-1]
    if last.end_lineno != last.lineno:
        return "\n".join([*lines[: last.lineno - 1], comment.strip(), *lines[last.lineno - 1 :]]) + "\n"
    return "\n".join([*lines[:-1], lines[-1] + comment]) + "\n"


def _asserting(source: str, mismatch: ObservedMismatch) -> Iterator[str]:
    """Yield the scripts with an assertion that fits the kind and place of the mismatch."""
    tree = parse_python(source)
    if mismatch.kind is MismatchKind.MISSING_RAISE:
        yield from map(format_script, with_required_exceptions(tree))
        return
    if mismatch.place.startswith("printed"):
        yield _must_print(tree, mismatch)
        return
    forms = [tree, with_named_inputs(tree)]
    if mismatch.kind is MismatchKind.GRADIENTS:
        forms.insert(1, with_named_inputs(tree, only_leaves=True))
    for version in dict.fromkeys(forms):
        yield from map(format_script, with_value_assertions(version, mismatch))
        yield from map(format_script, with_eager_comparisons(version, mismatch))


def _must_print(tree: ast.Module, mismatch: ObservedMismatch) -> str:
    """Return the script with an assertion that its last statement prints the eager line, or not the compiled one."""
    line, word = (mismatch.eager, "in") if mismatch.eager.strip() else (mismatch.compiled, "not in")
    *before, last = tree.body
    caught = parse_python(
        "import contextlib\nimport io\n"
        "with contextlib.redirect_stdout(io.StringIO()) as printed:\n    pass\n"
        f"assert {line!r} {word} printed.getvalue()"
    )
    *imports, block, check = caught.body
    assert isinstance(block, ast.With)
    block.body = [last]
    return format_script(ast.Module(body=[*imports, *before, block, check], type_ignores=[]))
