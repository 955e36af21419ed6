"""Cut the flow of data after the failing operation, and before it.

Before and after, with a traced value of ``h``::

    def f(x):                         def f(x):
        h = encode(x)                     h = torch.randn(4, 8)
        z = culprit(h)                    z = culprit(h)
        out = head(z)                     return z
        return out.sum()

The culprit mostly lies in the middle of a data flow, and no deletion can cut one. ``downstream`` ends a function at a
statement and returns what that statement makes. Most ends behind the culprit show the mismatch, and none before it
does. So the end is found by bisection, and a long ``forward`` costs a few questions. ``upstream`` assigns a constructor
of the value that the trace recorded. It goes from the last assignment back, because a late cut removes everything
before it. What becomes unused is removed in the same question.

``attributes`` replaces ``config.width`` by the number that it had in every run of its statement, all attributes of the
script in one question, and the globals that functions read. Settings, steps of a plan and the like reach the culprit
through objects, and their classes become unused with that.

Functions without a result stay, and so do values that only operations can make, as the oracle tells.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from torchbisect.core.trace import Trace
from torchbisect.minimizer.search import BATCH_AFTER, ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit, Replacement, apply_or_none, copied
from torchbisect.minimizer.syntax.scope import bound_names, enclosing, references
from torchbisect.minimizer.syntax.tree import Function, count_nodes, expression, expression_or_none, parents, walk
from torchbisect.minimizer.unused import attempt_and_clean, without_unused

MOST_NODES = 16
"""The most nodes of a value that may be larger than what it replaces."""
_NO_VALUES = frozenset({"torch", "self", "cls", "ctx"})


def downstream(search: ReductionSearch) -> None:
    """End each function early, the outer and first ones first."""
    for number in range(len(_functions_with_result(search.tree))):
        functions = _functions_with_result(search.tree)
        if number < len(functions):
            _end_early(search, functions[number])


def _functions_with_result(tree: ast.Module) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in walk(tree) if isinstance(node, Function) and _ends_in_result(node)]


def _ends_in_result(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Tell whether a function ends in a result that may be exchanged."""
    last = function.body[-1]
    if function.name == "backward" and isinstance(last, ast.Return) and isinstance(last.value, ast.Tuple):
        # Each gradient has the shape of its argument, so one value cannot stand for all of them.
        return False
    return isinstance(last, ast.Return) and last.value is not None


def _end_early(search: ReductionSearch, function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    """End a function at the earliest statement that shows the mismatch, found by bisection."""
    base = search.tree
    ends = _early_ends(function)
    low, high = 0, len(ends)
    while low < high:
        middle = (low + high) // 2
        last, edit = ends[middle]
        cut = apply_or_none(base, [edit])
        if search.attempt_once(Edit.remove(last), cut and without_unused(cut, harmless=True, since=base), base):
            high = middle
        else:
            low = middle + 1


def _early_ends(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[tuple[ast.stmt, Edit]]:
    """Return each statement that the function may end at, with the edit, the first one first."""
    found: list[tuple[ast.stmt, Edit]] = []
    last = function.body[-1]
    assert isinstance(last, ast.Return)
    for number, statement in enumerate(function.body[:-1]):
        name = _name_made_by(statement)
        if name is None:
            continue
        value: ast.expr = ast.Name(id=name, ctx=ast.Load())
        if isinstance(last.value, ast.Tuple):
            # Callers unpack as many elements; delete_parameters removes them later.
            value = ast.Tuple(elts=[value] * len(last.value.elts), ctx=ast.Load())
        rest = function.body[number + 1 : -1]
        if last.value is not None and (rest or ast.dump(value) != ast.dump(last.value)):
            found.append((statement, Edit((*((item, None) for item in rest), (last.value, value)))))
    return found


def _name_made_by(statement: ast.stmt) -> str | None:
    """Return the name of what a statement makes or changes: a target, a method's object, a first argument."""
    if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
        if isinstance(target, (ast.Tuple, ast.List)):
            target = target.elts[0]
        return _root(target)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        for part in [call.func, *call.args] if isinstance(call.func, ast.Attribute) else call.args:
            name = _root(part.value if isinstance(part, ast.Attribute) and part is call.func else part)
            if name is not None:
                return name
        return None
    bound = sorted(bound_names(getattr(statement, "body", [])))
    return bound[-1] if bound and not isinstance(statement, (*Function, ast.ClassDef)) else None


def _root(node: ast.expr) -> str | None:
    """Return ``y`` for ``y``, ``y[:, 0]`` and ``y.grad``."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
        node = node.value
    return node.id if isinstance(node, ast.Name) and node.id not in _NO_VALUES else None


def attributes(search: ReductionSearch) -> None:
    """Replace the attributes that the script reads by their values: all with what becomes unused, then fewer."""
    if search.trace is None:
        return
    edits = list(_traced_attributes(search.tree, search.trace))
    makers = list(_makers(search.tree, edits))
    removed = {id(node) for edit in makers for old, _ in edit.changes for node in walk(old)}
    kept = [edit for edit in edits if not any(id(old) in removed for old, _ in edit.changes)]
    tree = apply_or_none(search.tree, [*kept, *makers]) if edits else None
    if tree is None:
        return
    # What made an object is mostly only that, whatever its class may do: the oracle tells.
    cleaned = (without_unused(tree, harmless=harmless, since=search.tree) for harmless in (False, True))
    if search.attempt_first(cleaned) is None:
        search.delta_debug([edit for edit in edits if _is_small(edit)])


def _traced_attributes(tree: ast.Module, trace: Trace) -> Iterator[Edit]:
    """Return an edit for each attribute or global that has one value in the trace, the longest path of each."""
    texts = {(value.line, value.name): value.text for value in trace.reads}
    above = parents(tree)
    for node in walk(tree):
        if not isinstance(node, (ast.Attribute, ast.Name)) or not isinstance(node.ctx, ast.Load):
            continue
        if isinstance(above[id(node)], ast.Attribute) or not hasattr(node, "lineno"):
            continue
        statement: ast.AST = node
        while not isinstance(statement, ast.stmt):
            statement = above[id(statement)]
        text = texts.get((statement.end_lineno or 0, ast.unparse(node)))
        if text is None:
            continue
        value = expression_or_none(text)
        if value is not None and count_nodes(value) <= MOST_NODES:
            yield Edit.of(node, value)


def _makers(tree: ast.Module, edits: list[Edit]) -> Iterator[Edit]:
    """Return edits that remove the module's statements which only make or fill a global that is written out."""
    gone = {id(old) for edit in edits for old, _ in edit.changes}
    names = {old.id for edit in edits for old, _ in edit.changes if isinstance(old, ast.Name)}
    fill: dict[str, list[ast.stmt]] = {name: [] for name in names}
    for statement in tree.body:
        if isinstance(statement, ast.Assign):
            name = _root(statement.targets[0]) if len(statement.targets) == 1 else None
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            name = _root(statement.value.func)
        else:
            name = None
        if name in fill:
            fill[name].append(statement)
    for name, statements in fill.items():
        gone.update(id(node) for statement in statements for node in walk(statement))
        if all(id(node) in gone for node in walk(tree) if isinstance(node, ast.Name) and node.id == name):
            yield from map(Edit.remove, statements)


def _is_small(edit: Edit) -> bool:
    """Tell whether an edit makes the script smaller by itself."""
    return all(isinstance(new, (ast.Constant, ast.Name, ast.Attribute)) for _, new in edit.changes)


def upstream(search: ReductionSearch) -> None:
    """Cut at each assignment from the back, and make more and more cuts in one question while they are accepted."""
    trace, row = search.trace, 0
    if trace is None:
        return
    place: int | None = 0
    while place is not None:
        if row >= BATCH_AFTER:
            tree, made = _several_cuts(search.tree, trace, place, 2 ** (row - BATCH_AFTER + 1))
            if made > 1 and search.attempt(tree):
                row += 1
                continue
        won = attempt_and_clean(search, list(_cuts(search.tree, trace)), place)
        row = row + 1 if won == place and row < BATCH_AFTER else 1
        place = won


def _several_cuts(tree: ast.Module, trace: Trace, place: int, most: int) -> tuple[ast.Module, int]:
    """Return a tree with several cuts from a place on, without what they leave unused, and their number."""
    made = 0
    while made < most:
        edit = next(itertools.islice(_cuts(tree, trace), place, None), None)
        following = None if edit is None else apply_or_none(tree, [edit])
        if following is None:
            break
        tree, made = without_unused(following, harmless=True, since=tree), made + 1
    return tree, made


def _cuts(tree: ast.Module, trace: Trace) -> Iterator[Edit]:
    """Return an edit for each assignment whose value has a simpler expression in the trace."""
    texts = {(value.line, value.name): value.text for value in trace.values}
    exact = {(value.line, value.name) for value in trace.values if value.exact}
    above = parents(tree)
    inside = {id(node) for function in walk(tree) if isinstance(function, Function) for node in walk(function)}
    for node in reversed(list(walk(tree))):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1 or node.end_lineno is None:
            continue
        name = ast.unparse(node.targets[0])
        text = texts.get((node.end_lineno, name))
        if isinstance(node.targets[0], (ast.Tuple, ast.List)):
            parts = [(node.end_lineno, ast.unparse(item)) for item in node.targets[0].elts]
            known = exact.issuperset(parts)
            spelled = (
                _numbers_in_place(node, enclosing(above, node), [texts[part] for part in parts]) if known else None
            )
            if spelled is not None:
                yield spelled
            text = f"({', '.join(texts[part] for part in parts)})" if known else None
        written = ast.unparse(node.value)
        if text is None or text == written or ".compile(" in written:
            continue
        value = expression_or_none(text)
        if value is not None and count_nodes(value) <= max(count_nodes(node.value), MOST_NODES):
            plain = _without_random_numbers(text) if id(node) in inside else None
            if plain is not None:
                yield Edit.of(node.value, plain)
            yield Edit.of(node.value, value)
            if "requires_grad=True" in text and not isinstance(node.value, ast.BinOp):
                # A leaf that requires a gradient cannot be changed in place; the traced value could.
                yield Edit.of(node.value, ast.BinOp(left=value, op=ast.Mult(), right=ast.Constant(1)))


def _numbers_in_place(node: ast.Assign, scope: ast.AST, texts: list[str]) -> Edit | None:
    """Return the edit from ``rows, columns = x.shape`` to its numbers in place; ``None`` if it cannot be done."""
    target, changes = node.targets[0], list[tuple[ast.AST, Replacement]]()
    assert isinstance(target, (ast.Tuple, ast.List))
    for item, text in zip(target.elts, texts):
        value = expression_or_none(text)
        mentions = references(scope, item.id) if isinstance(item, ast.Name) else []
        stored = sum(not isinstance(mention.ctx, ast.Load) for mention in mentions)
        if stored != 1 or not isinstance(value, ast.Constant):
            return None
        changes += [(use, copied(value)) for use in mentions if isinstance(use.ctx, ast.Load)]
    return Edit(((node, None), *changes))


def _without_random_numbers(text: str) -> ast.expr | None:
    """Return ``torch.ones(2, 3)`` for ``torch.randn(2, 3)``: compiled code should not draw random numbers."""
    for name in ("torch.randn(", "torch.rand("):
        if text.startswith(name):
            return expression(text.replace(name, "torch.ones(", 1))
    return None
