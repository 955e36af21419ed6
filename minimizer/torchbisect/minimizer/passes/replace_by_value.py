"""Replace an expression by the value that it had in the trace, and a loop by one of its iterations.

Before and after, with the traced values::

    batch = load(config)[0]           x = torch.ones(4, 8)
    f(batch["image"], scale(batch))   f(x, 2.0)

    for name, part in model.named_modules():      part = model.body[0]
        if pattern.match(name):                   part.register_forward_hook(hook)
            part.register_forward_hook(hook)

A value mostly needs much less of the script than the computation that made it. ``expressions`` tries the replacement
that removes most first, with what becomes unused. A tensor may also give way to a parameter of the function around it:
made there, it would be traced. ``iterations`` takes the iterations that ran most of the body first. Where none alone
will do and the loop had few, all are written out, so that each statement of each can go by itself.

Without a trace the pass does nothing. The compiled call is no candidate, as the filter tells.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from torchbisect.core.trace import Iteration, Trace
from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edit_keys import edit_keys
from torchbisect.minimizer.syntax.edits import Edit, apply, apply_or_none
from torchbisect.minimizer.syntax.loops import body_once
from torchbisect.minimizer.syntax.names import called_name, substituted
from torchbisect.minimizer.syntax.registries import registered
from torchbisect.minimizer.syntax.scope import bound_names, calls_python, parameters, variables_in
from torchbisect.minimizer.syntax.torch_names import TENSOR_CONSTRUCTORS, TorchNames
from torchbisect.minimizer.syntax.tree import Function, count_nodes, expression_or_none, parents, walk
from torchbisect.minimizer.syntax.unbound_names import with_imports
from torchbisect.minimizer.unused import without_unused

MOST_QUESTIONS = 24
"""The most questions of one run, and the most that fail in a row is half of it."""
MOST_MEASURED = 60
"""The most expressions whose replacement is measured before one is tried."""
LEAST_GAIN = 3
"""The fewest nodes that a replacement has to remove; other passes are better at less. A call of the script's own
function need not become smaller: with one call less the function may be inlined, or its recursion ends."""


def expressions(search: ReductionSearch) -> None:
    """Replace one expression after the other, the one that removes most first."""
    trace, asked, failed = search.trace, 0, 0
    if trace is None:
        return
    tried: set[str] = set()
    candidates = _replacements(search.tree, trace)
    while asked < MOST_QUESTIONS and failed < MOST_QUESTIONS // 2:
        candidate = next((item for item in candidates if item.key not in tried), None)
        if candidate is None:
            return
        tried.add(candidate.key)
        before = search.interestingness.asked
        won = search.attempt_once(candidate.edit, candidate.tree)
        questions = search.interestingness.asked - before
        asked, failed = asked + questions, 0 if won else failed + questions
        if won:
            candidates = _replacements(search.tree, trace)


@dataclass(frozen=True)
class _Replacement:
    """A tree with one expression replaced, its size, the edit, and what identifies it from tree to tree."""

    nodes: int
    key: str
    tree: ast.Module
    edit: Edit


def _replacements(tree: ast.Module, trace: Trace) -> list[_Replacement]:
    """Return the replacements that make the tree smaller, the smallest result first."""
    size, found = count_nodes(tree), list[_Replacement]()
    places = sorted(_valued(tree, trace), key=lambda pair: -count_nodes(pair[0]))
    own = {node.name for node in walk(tree) if isinstance(node, Function)}
    for node, text in places[:MOST_MEASURED]:
        least = 0 if isinstance(node, ast.Call) and called_name(node.func) in own else LEAST_GAIN
        for value in _values(tree, node, text):
            edit = Edit(((node, value), *_registrations(tree, value)))
            changed = apply_or_none(tree, [edit])
            changed = None if changed is None else with_imports(without_unused(changed, harmless=True, since=tree))
            if changed is not None and (nodes := count_nodes(changed)) <= size - least:
                found.append(_Replacement(nodes, f"{_position(node)} {ast.dump(value)}", changed, edit))
    return sorted(found, key=lambda item: item.nodes)


def _registrations(tree: ast.Module, value: ast.expr) -> Iterator[tuple[ast.AST, None]]:
    """Return the removals of the decorators that entered what a value names in a table, by which it was looked up."""
    named = variables_in(value)
    yield from ((decorator, None) for node, decorator in registered(tree) if node.name in named)


def _position(node: ast.AST) -> tuple[int | None, ...]:
    return tuple(getattr(node, name, None) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset"))


def _valued(tree: ast.Module, trace: Trace) -> Iterator[tuple[ast.expr, str]]:
    """Return the expressions of which the trace has a value, without those that compile something."""
    texts = {(item.line, item.column, item.end_line, item.end_column): item.text for item in trace.expressions}
    torch_names, above = TorchNames.of(tree), parents(tree)
    for node in walk(tree):
        text = texts.get(_position(node)) if isinstance(node, ast.expr) else None  # type: ignore[arg-type]
        if text is None or not isinstance(node, ast.expr) or isinstance(above[id(node)], ast.Expr):
            continue
        if text != ast.unparse(node) and not torch_names.mentions_compile(node):
            yield node, text


def _values(tree: ast.Module, node: ast.expr, text: str) -> Iterator[ast.expr]:
    """Return what may take the place of an expression: its value, in a function with a parameter for each tensor."""
    value = expression_or_none(text)
    if value is None:
        return
    name = _first_parameter(tree, node)
    if name is not None and "torch." in text:
        plain = _with_parameter(value, name)
        if plain is not None:
            yield plain
    yield value


def _first_parameter(tree: ast.Module, node: ast.expr) -> str | None:
    """Return the first parameter of the innermost function around an expression, by custom a tensor."""
    found: str | None = None
    for function in walk(tree):
        if isinstance(function, Function) and any(item is node for part in function.body for item in walk(part)):
            names = [item.arg for item in parameters(function.args) if item.arg not in ("self", "cls", "ctx")]
            found = names[0] if names else None
    return found


def _with_parameter(value: ast.expr, name: str) -> ast.expr | None:
    """Return a value with a parameter in the place of each tensor; ``None`` if it has no tensor."""
    tensors = [node for node in walk(value) if _makes_tensor(node)]
    if not tensors:
        return None
    whole = ast.Assign(targets=[ast.Name(id="value", ctx=ast.Store())], value=value)
    edits = [Edit.of(node, ast.Name(id=name, ctx=ast.Load())) for node in tensors]
    changed = apply(ast.Module(body=[whole], type_ignores=[]), edits).body[0]
    assert isinstance(changed, ast.Assign)
    return changed.value


def _makes_tensor(node: ast.AST) -> bool:
    """Tell whether an expression is a constructor of a tensor, as the trace writes it."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return (
        isinstance(node.func.value, ast.Name)
        and node.func.value.id == "torch"
        and node.func.attr in TENSOR_CONSTRUCTORS
    )


def iterations(search: ReductionSearch, finish: Callable[[ReductionSearch], None]) -> None:
    """Replace one loop after the other by one of its iterations, else by all that it had; ``finish`` shrinks these."""
    trace, tried = search.trace, set[str]()
    if trace is None:
        return
    while True:
        for key, tree in _single_iterations(search.tree, trace):
            if key in tried:
                continue
            tried.add(key)
            larger = count_nodes(tree) > search.key.nodes
            if search.attempt(tree) or (larger and (search.attempt_rewrite(tree) or search.pump(tree, finish, 8))):
                break
        else:
            break
    while any(search.pump_once(key, tree, finish, 8) for key, tree in _written_out(search.tree, trace)):
        pass


def _single_iterations(tree: ast.Module, trace: Trace) -> Iterator[tuple[str, ast.Module]]:
    """Return the trees in which a loop is one of its iterations, each with what identifies it.

    Where making what the loop goes over may be what the mismatch is about, that is made too.
    """
    for node, recorded in _traced_loops(tree, trace):
        bodies = [(str(item.texts), _bound_body(node, item)) for item in recorded]
        first = bodies[0][1]
        if first is not None and _calls_others(node.iter):
            bodies.append(("made", [ast.Expr(node.iter), *first]))
        for name, body in bodies:
            if body is not None:
                changed = without_unused(apply(tree, [Edit.of(node, body)]), harmless=True, since=tree)
                yield f"{node.lineno} {name}", changed


def _calls_others(node: ast.expr) -> bool:
    """Tell whether an expression calls anything but Python's own functions and methods of containers."""
    return any(isinstance(item, ast.Call) and not calls_python(item.func) for item in walk(node))


def _written_out(tree: ast.Module, trace: Trace) -> Iterator[tuple[str, ast.Module]]:
    """Return the trees in which a loop of few iterations is written out, each with what identifies it.

    A mismatch may need two calls, and the loop around them is only how the program makes them.
    """
    key = edit_keys(tree)
    for node, recorded in _traced_loops(tree, trace):
        in_order = sorted(recorded, key=lambda item: item.number)
        bodies = [_bound_body(node, item) for item in in_order]
        if len(recorded) == recorded[0].count > 1 and None not in bodies:
            edit = Edit.of(node, [statement for body in bodies if body is not None for statement in body])
            changed = without_unused(apply(tree, [edit]), harmless=True, since=tree)
            yield key(Edit.of(node, list[ast.AST](node.body))), changed


def _traced_loops(tree: ast.Module, trace: Trace) -> Iterator[tuple[ast.For, list[Iteration]]]:
    """Return the loops of which the trace has iterations, the outer ones first."""
    recorded: dict[int, list[Iteration]] = {}
    for item in trace.iterations:
        recorded.setdefault(item.line, []).append(item)
    for node in walk(tree):
        if isinstance(node, ast.For) and getattr(node, "lineno", 0) in recorded:
            yield node, recorded[node.lineno]


def _bound_body(node: ast.For, item: Iteration) -> list[ast.AST] | None:
    """Return the body of a loop after the assignments of its variables, or with constants and paths in their place."""
    body = body_once(node.body)
    read = {
        part.id for one in body for part in walk(one) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)
    }
    assigned, before, direct = bound_names(body), list[ast.AST](), dict[str, ast.expr]()
    for name, text in zip(item.names, item.texts):
        if name not in read:
            continue
        value = None if text is None else expression_or_none(text)
        if value is None:
            return None
        plain = isinstance(value, (ast.Constant, ast.Attribute, ast.Subscript, ast.Name))
        if plain and name not in assigned:
            direct[name] = value
        else:
            before.append(ast.Assign(targets=[ast.Name(id=name, ctx=ast.Store())], value=value))
    return [*before, *(substituted(part, {}, direct) for part in body)]
