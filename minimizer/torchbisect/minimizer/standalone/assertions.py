"""The minimal script as one that stands alone: under plain ``python`` it fails where the bug is, and says what differs.

A mismatch that only an observer sees (a wrong ``requires_grad``, a number that nobody asserts) needs an assertion of
its own. What to assert follows from where the difference was seen; there is often more than one way to say it, so
these are candidates, the plainest first, for the caller to run.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Protocol

from torchbisect.core.mismatch import MismatchKind
from torchbisect.minimizer.standalone.named_inputs import with_names
from torchbisect.minimizer.syntax.edits import Edit, apply, copied
from torchbisect.minimizer.syntax.layout import format_script
from torchbisect.minimizer.syntax.torch_names import TorchNames
from torchbisect.minimizer.syntax.tree import expression, parse, walk

_ENDS_BY_ITSELF = frozenset(
    {
        MismatchKind.CRASH,
        MismatchKind.HANG,
        MismatchKind.RAISES,
        MismatchKind.RAISES_DIFFERENTLY,
        MismatchKind.SLOW,
        MismatchKind.COMMAND,
    }
)
_FLAGS = ("requires_grad", "is_leaf", "dtype", "shape", "stride", "device", "layout", "is_contiguous")
_METHODS = frozenset({"stride", "is_contiguous"})
# How the shape of a container is read, by the name that the comparison gives it.
_STRUCTURE = {"length": ("len({})",), "keys": ("list({})", "sorted({})", "sorted(vars({}))"), "type": ()}
_PATH = re.compile(r"(?:output|return value|gradient)(.*)$")
_PARAMETER = re.compile(r"\w((?:\.\w+|\[\d+\])+)\.grad$")
_SAFE_PATH = re.compile(r"(?:\[(?:-?\d+|'[^']*'|\"[^\"]*\")\]|\.\w+)*\Z")


class Seen(Protocol):
    """What the probe says of a mismatch, as far as it is needed here."""

    @property
    def kind(self) -> MismatchKind:
        """The kind of mismatch."""

    @property
    def place(self) -> str:
        """Where it was seen: ``call 0 output[1]``, ``global loss``."""

    @property
    def attribute(self) -> str:
        """What differs there."""

    @property
    def eager(self) -> str:
        """The eager side in a few words."""

    @property
    def compiled(self) -> str:
        """The compiled side in a few words."""


def standalone(source: str, mismatch: Seen, *, limit: int = 24) -> list[str]:
    """Scripts that fail by themselves where the mismatch is, the plainest first.

    The first is the script as it is: what raises or crashes needs nothing more, and the user's own assertion is the
    best one. The caller runs each with plain ``python``: one that stands alone ends non-zero on the failing build and
    zero on a passing one.
    """
    found = [source]
    if mismatch.kind not in _ENDS_BY_ITSELF:
        found += [with_comment(text, mismatch.eager, mismatch.compiled) for text in _asserting(source, mismatch)]
    return list(dict.fromkeys(found))[:limit]


def with_comment(source: str, eager: str, compiled: str) -> str:
    """The script with what differs said behind its last statement: ``# eager: True, compiled: False``."""
    plain = ["".join(letter if letter.isprintable() else " " for letter in side) for side in (eager, compiled)]
    words = [re.sub(r"\s+", " ", side).strip() for side in plain]
    if not all(words) or any(len(word) > 60 for word in words):
        return source
    comment = f"  # eager: {words[0]}, compiled: {words[1]}"
    lines = source.rstrip("\n").split("\n")
    last = ast.parse(source).body[-1]
    if last.end_lineno != last.lineno:
        return "\n".join([*lines[: last.lineno - 1], comment.strip(), *lines[last.lineno - 1 :]]) + "\n"
    return "\n".join([*lines[:-1], lines[-1] + comment]) + "\n"


def _asserting(source: str, mismatch: Seen) -> Iterator[str]:
    tree = parse(source)
    if mismatch.kind is MismatchKind.MISSING_RAISE:
        yield from _must_raise(tree)
        return
    if mismatch.place.startswith("printed"):
        yield from _must_print(tree, mismatch)
        return
    for way in dict.fromkeys((tree, with_names(tree))):
        for subject, changed in _subjects(way, mismatch):
            for check in _checks(subject, mismatch):
                yield format_script(_with(changed, [check]))
        for changed, call, eager in _pairs(way):
            yield from _compared(changed, call, eager, mismatch)
            for gradient in _gradients(changed, mismatch.place):
                yield _differentiated(changed, call, eager, ast.unparse(gradient))


def _with(tree: ast.Module, more: list[ast.stmt]) -> ast.Module:
    whole = copied(tree)
    whole.body += [copied(statement) for statement in more]
    return whole


def _must_raise(tree: ast.Module) -> Iterator[str]:
    """The last statement has to raise: eager does."""
    *before, last = tree.body
    for handled in ("Exception",):
        text = (
            f"try:\n    pass\nexcept {handled}:\n    pass\nelse:\n    raise AssertionError('compiled raises nothing')\n"
        )
        attempt = parse(text)
        inner = attempt.body[0]
        assert isinstance(inner, ast.Try)
        inner.body = [last]
        yield format_script(ast.Module(body=[*before, inner], type_ignores=[]))


def _must_print(tree: ast.Module, mismatch: Seen) -> Iterator[str]:
    """What the last statement prints has eager's line in it, or has not the line that only compiled prints."""
    line, word = (mismatch.eager, "in") if mismatch.eager.strip() else (mismatch.compiled, "not in")
    *before, last = tree.body
    caught = parse(
        "import contextlib\nimport io\n"
        "with contextlib.redirect_stdout(io.StringIO()) as printed:\n    pass\n"
        f"assert {line!r} {word} printed.getvalue()"
    )
    *imports, block, check = caught.body
    assert isinstance(block, ast.With)
    block.body = [last]
    yield format_script(ast.Module(body=[*imports, *before, block, check], type_ignores=[]))


def _subjects(tree: ast.Module, mismatch: Seen) -> Iterator[tuple[ast.expr, ast.Module]]:
    """Expressions for the thing that differs, each with the script in which it can be written."""
    place = mismatch.place
    name = re.search(r"global ([A-Za-z_]\w*)(.*)$", place)
    if name and _SAFE_PATH.match(name.group(2).strip()):
        yield expression(name.group(1) + name.group(2).strip()), tree
    yield from ((gradient, tree) for gradient in _gradients(tree, place))
    path = _PATH.search(place)
    tail = path.group(1).strip() if path and _SAFE_PATH.match(path.group(1).strip()) else ""
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        changed = ast.Module(body=tree.body[:-1], type_ignores=[])
        yield expression(f"({ast.unparse(last.value)}){tail}"), changed
    if isinstance(last, ast.Assign) and isinstance(last.targets[0], ast.Name):
        yield expression(last.targets[0].id + tail), tree
        if len(last.targets) == 1:
            changed = ast.Module(body=tree.body[:-1], type_ignores=[])
            yield expression(f"({ast.unparse(last.value)}){tail}"), changed
    for name_ in _bound(tree):
        yield expression(name_), tree


def _gradients(tree: ast.Module, place: str) -> Iterator[ast.expr]:
    """Leaves that have a gradient in the end, parameters of modules too, and what ``torch.autograd.grad`` gave.

    Nothing where the place isn't one of a gradient.
    """
    if "gradient" not in place and "backward" not in place:
        return
    for node in tree.body:
        if isinstance(node, ast.Assign) and "autograd.grad" in ast.unparse(node.value):
            for item in walk(node.targets[0]):
                if isinstance(item, ast.Name):
                    yield expression(item.id)
    for node in tree.body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and "requires_grad" in ast.unparse(node)
        ):
            yield expression(f"{node.targets[0].id}.grad")
    parameter = _PARAMETER.search(place)
    if parameter:
        path = re.sub(r"\.(\d+)", r"[\1]", parameter.group(1))
        for name in _bound(tree):
            yield expression(f"{name}{path}.grad")


def _bound(tree: ast.Module) -> list[str]:
    """Names that the module's own statements bind to values, the last first."""
    found: list[str] = []
    for node in reversed(tree.body):
        if isinstance(node, ast.Assign):
            found += [item.id for target in node.targets for item in walk(target) if isinstance(item, ast.Name)]
    return list(dict.fromkeys(found))


def _checks(subject: ast.expr, mismatch: Seen) -> Iterator[ast.stmt]:
    """Assertions that hold on the eager side."""
    text, attribute, eager = ast.unparse(subject), mismatch.attribute, mismatch.eager.strip()
    flag = next((name for name in _FLAGS if name == attribute.split("(")[0].strip()), None)
    if flag is not None:
        read = f"{text}.{flag}()" if flag in _METHODS else f"{text}.{flag}"
        if eager in ("True", "False"):
            yield _statement(f"assert {read}" if eager == "True" else f"assert not {read}")
        elif _literal(eager):
            yield _statement(f"assert {read} == {eager}")
        return
    if "is None" in attribute or eager == "None" or mismatch.compiled.strip() == "None":
        yield _statement(f"assert {text} is None" if eager == "None" else f"assert {text} is not None")
        return
    read_as = _STRUCTURE.get(attribute)
    if read_as is not None:
        if _literal(eager):
            yield from (_statement(f"assert {way.format(text)} == {eager}") for way in read_as)
        elif eager.isidentifier():
            yield _statement(f"assert type({text}).__name__ == {eager!r}")
        return
    if eager in ("True", "False"):
        yield _statement(f"assert {text}" if eager == "True" else f"assert not {text}")
    elif _literal(eager):
        yield _statement(f"assert {text} == {eager}")


def _literal(text: str) -> bool:
    """Whether a side's words are an expression that can be compared with."""
    if re.fullmatch(r"torch\.\w+", text):
        return True
    if text.startswith("torch.Size("):
        return bool(re.fullmatch(r"torch\.Size\(\[[\d, ]*\]\)", text))
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _statement(text: str) -> ast.stmt:
    return ast.parse(text).body[0]


def _pairs(tree: ast.Module) -> Iterator[tuple[ast.Module, ast.Call, ast.expr]]:
    """Each call of a compiled thing at module level, with the expression for the same thing not compiled."""
    torch_names = TorchNames.of(tree)
    calls = [node for node in walk(tree) if isinstance(node, ast.Call)]
    for call in calls:
        if isinstance(call.func, ast.Call) and torch_names.is_compile(call.func) and call.func.args:
            yield tree, call, call.func.args[0]
    made = {
        node.targets[0].id: node.value.args[0]
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Call)
        if torch_names.is_compile(node.value) and node.value.args
    }
    for statement in reversed(tree.body):
        for node in walk(statement):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in made:
                yield tree, node, made[node.func.id]
    for function in tree.body:
        if isinstance(function, ast.FunctionDef):
            compiled = [item for item in function.decorator_list if torch_names.is_compile(item)]
            if compiled:
                yield from _decorated(tree, function, compiled[0], torch_names)


def _decorated(
    tree: ast.Module, function: ast.FunctionDef, decorator: ast.expr, torch_names: TorchNames
) -> Iterator[tuple[ast.Module, ast.Call, ast.expr]]:
    """A decorated function can't be had without its decorator, so the decorator goes to the call."""
    keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
    func = decorator.func if isinstance(decorator, ast.Call) else decorator
    bare = copied(function)
    bare.decorator_list = [item for item in bare.decorator_list if not torch_names.is_compile(item)]
    name = ast.Name(id=function.name, ctx=ast.Load())
    wrapped = ast.Call(func=func, args=[name], keywords=keywords)
    uses = [
        node
        for node in walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function.name
    ]
    if len(uses) == 1:
        changed = apply(tree, [Edit(((function, bare), (uses[0].func, wrapped)))])
        for node in walk(changed):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Call) and torch_names.is_compile(node.func):
                yield changed, node, name


def _compared(tree: ast.Module, call: ast.Call, eager: ast.expr, mismatch: Seen) -> Iterator[str]:
    """The compiled call beside the eager one; on clones of its arguments too, for calls that change them."""
    plain = ast.unparse(ast.Call(func=eager, args=call.args, keywords=call.keywords))
    ours = ast.unparse(call)
    last = tree.body[-1]
    whole = isinstance(last, ast.Expr) and last.value is call
    before = tree.body[:-1] if whole else tree.body

    def ending(*lines: str, before: list[ast.stmt] = before) -> str:
        return format_script(ast.Module(body=[*before, *map(_statement, lines)], type_ignores=[]))

    flag = next((name for name in _FLAGS if name == mismatch.attribute), None)
    if flag is not None:
        tail = "()" if flag in _METHODS else ""
        yield ending(f"assert ({ours}).{flag}{tail} == ({plain}).{flag}{tail}")
    yield ending(f"torch.testing.assert_close({ours}, {plain})")
    yield ending(f"assert {ours} == {plain}")
    if isinstance(last, ast.Expr) and not whole and call in walk(last):
        other = ast.unparse(apply(tree, [Edit.of(call.func, eager)]).body[-1])
        yield ending(f"torch.testing.assert_close({ast.unparse(last)}, {other})", before=tree.body[:-1])
    names = [item.id for item in call.args if isinstance(item, ast.Name)]
    for name in names:
        copy = ast.unparse(
            ast.Call(func=eager, args=[_renamed(item, name) for item in call.args], keywords=call.keywords)
        )
        yield ending(f"other = {name}.clone()", f"torch.testing.assert_close({ours}, {copy})")
        yield ending(f"other = {name}.clone()", copy, ours, f"torch.testing.assert_close({name}, other)")


def _differentiated(tree: ast.Module, call: ast.Call, eager: ast.expr, gradient: str) -> str:
    """The gradient beside the one that the same statements give without ``torch.compile``."""
    first = next(at for at, statement in enumerate(tree.body) if call in walk(statement))
    again = apply(tree, [Edit.of(call.func, eager)]).body[first:]
    kept, same = f"compiled, {gradient} = {gradient}, None", f"torch.testing.assert_close(compiled, {gradient})"
    return format_script(ast.Module(body=[*tree.body, _statement(kept), *again, _statement(same)], type_ignores=[]))


def _renamed(item: ast.expr, name: str) -> ast.expr:
    return ast.Name(id="other", ctx=ast.Load()) if isinstance(item, ast.Name) and item.id == name else item
