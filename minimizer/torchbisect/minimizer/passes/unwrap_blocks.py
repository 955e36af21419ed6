"""A block without what is round it: ``with``, ``if``, ``for``, ``while``, ``try`` give way to their body.

Contexts, conditions and loops are what a bug is found under, rarely what it needs. A loop becomes one iteration, with
its variable bound to the first item. Leaves loops whose body the mismatch needs more than once, and branches that
need to be decided when it runs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit, Replacement, apply
from torchbisect.minimizer.syntax.scope import bound_names, module_parameters
from torchbisect.minimizer.syntax.substitution import substituted
from torchbisect.minimizer.syntax.tree import Comprehension, walk

MOST_UNROLLED = 4
_NUMBERED = re.compile(r"\.[1-9][0-9]*\b")


def run(search: ReductionSearch, finish: Callable[[ReductionSearch], None]) -> None:
    """All at once first, since a script often needs none of them; then one by one, outermost first."""
    firsts: dict[int, Edit] = {}
    for edit in options(search.tree):
        firsts.setdefault(id(edit.changes[0][0]), edit)
    if len(firsts) > 1:
        search.delta_debug(list(firsts.values()))
    search.scan(options)
    while any(search.pump(tree, finish, 8) for tree in _first_iterations(search.tree)):
        pass


def _first_iterations(tree: ast.Module) -> Iterator[ast.Module]:
    """The tree with a loop written out, with its first iteration, or with a context's entry: longer, to be shrunk."""
    for node in walk(tree):
        if isinstance(node, ast.For):
            unrolled = _unrolled(tree, node)
            if unrolled is not None:
                yield apply(tree, [unrolled])
            for replacement in _iterations(node):
                if isinstance(replacement, list) and replacement and replacement[0] not in node.body:
                    yield apply(tree, [Edit.of(node, replacement)])
        elif isinstance(node, ast.With) and len(node.items) == 1:
            yield apply(tree, [Edit.of(node, [_entered(node.items[0]), *node.body])])


def _entered(item: ast.withitem) -> ast.stmt:
    """What entering a context does, without the context."""
    entered = ast.Call(ast.Attribute(item.context_expr, "__enter__", ast.Load()), [], [])
    if item.optional_vars is None:
        return ast.Expr(entered)
    return ast.Assign(targets=[item.optional_vars], value=entered)


def options(tree: ast.Module) -> Iterator[Edit]:
    """What each block may become, the likeliest first."""
    weights, later = module_parameters(tree), list(_later_items(tree))
    for node in walk(tree):
        if isinstance(node, ast.For):
            yield from (Edit.of(node, replacement) for replacement in _over_weights(node, weights))
            unrolled = _unrolled(tree, node)
            if unrolled is not None:
                yield unrolled
        for replacement in _instead(node):
            yield Edit.of(node, replacement)
            if later and isinstance(node, Comprehension) and isinstance(replacement, ast.List):
                yield Edit(((node, replacement), *later))


def _later_items(tree: ast.Module) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Every index and every number in a dotted path with 0 in its place, for a list that keeps one item."""
    for node in walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and type(node.slice.value) is int:
            if node.slice.value > 0:
                yield node.slice, ast.Constant(0)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _NUMBERED.search(node.value):
            yield node, ast.Constant(_NUMBERED.sub(".0", node.value))


def _unrolled(tree: ast.Module, node: ast.For) -> Edit | None:
    """A loop over a few names or constants, written out, without the list if that has a name for this loop alone.

    Of anything else only over one: what the list holds takes the list's name.
    """
    source, gone = node.iter, list[ast.AST]()
    if isinstance(source, ast.Name):
        named = source.id
        bound = [item for item in walk(tree) if isinstance(item, ast.Assign) and ast.unparse(item.targets[0]) == named]
        if len(bound) == 1 and sum(isinstance(item, ast.Name) and item.id == named for item in walk(tree)) == 2:
            source, gone = bound[0].value, [*bound]
    if not isinstance(source, (ast.List, ast.Tuple)) or not isinstance(node.target, ast.Name):
        return None
    name, once = node.target.id, not any(isinstance(item, (ast.Break, ast.Continue)) for item in walk(node))
    if name in bound_names(node.body) or node.orelse or not once:
        return None
    if gone and len(source.elts) == 1 and isinstance(node.iter, ast.Name):
        body = [substituted(item, {}, {name: node.iter}) for item in node.body]
        return Edit(((node, [*body]), (source, source.elts[0])))
    simple = all(isinstance(item, (ast.Name, ast.Constant)) for item in source.elts)
    if not simple or len(source.elts) > MOST_UNROLLED:
        return None
    body = [substituted(item, {}, {name: one}) for one in source.elts for item in node.body]
    return Edit(((node, [*body]), *((item, None) for item in gone)))


def _over_weights(node: ast.For, weights: list[str]) -> Iterator[Replacement]:
    """``for p in model.parameters()`` with ``p`` one of the weights by name, since the first may be the wrong one."""
    source, target = node.iter, node.target
    if not isinstance(source, ast.Call) or not isinstance(source.func, ast.Attribute):
        return
    if source.func.attr == "named_parameters" and isinstance(target, ast.Tuple) and len(target.elts) == 2:
        target = target.elts[1]
    elif source.func.attr != "parameters":
        return
    for name in weights:
        weight = ast.Attribute(value=source.func.value, attr=name, ctx=ast.Load())
        yield [ast.Assign(targets=[target], value=weight), *_once(node.body)]


def _instead(node: ast.AST) -> Iterator[Replacement]:
    if isinstance(node, ast.Assign):
        yield from _split(node)
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        yield [*_bound(node), *node.body]
        if len(node.items) > 1:
            for item in node.items:
                kept = [other for other in node.items if other is not item]
                yield type(node)(items=kept, body=node.body)
    elif isinstance(node, ast.If):
        yield list(node.body)
        if node.orelse:
            yield list(node.orelse)
            yield ast.If(test=node.test, body=node.body, orelse=[])
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        yield from _iterations(node)
    elif isinstance(node, ast.While):
        yield _once(node.body)
    elif isinstance(node, ast.Try):
        yield [*node.body, *node.orelse, *node.finalbody]
        if len(node.body) > 1:
            # What is caught is mostly what the last statement raises.
            last = ast.Try(node.body[-1:], handlers=node.handlers, orelse=node.orelse, finalbody=node.finalbody)
            yield [*node.body[:-1], last]
        if len(node.handlers) == 1:
            yield list(node.handlers[0].body)
    elif isinstance(node, ast.Match):
        for case in node.cases:
            yield list(case.body)
    elif isinstance(node, (ast.ListComp, ast.GeneratorExp)) and len(node.generators) == 1:
        generator = node.generators[0]
        source, target = generator.iter, generator.target
        firsts = _firsts(source, target)
        if firsts:
            only = substituted(ast.Expr(node.elt), {}, firsts)
            assert isinstance(only, ast.Expr)
            yield ast.List(elts=[only.value], ctx=ast.Load())
        elif not any(isinstance(item, ast.Name) and item.id in bound_names([target]) for item in walk(node.elt)):
            yield ast.List(elts=[node.elt], ctx=ast.Load())
        if isinstance(generator.iter, ast.Call) and isinstance(generator.iter.func, ast.Name):
            yield ast.List(elts=[node.elt], ctx=ast.Load())
        yield generator.iter
    elif isinstance(node, ast.IfExp):
        yield node.body
        yield node.orelse


def _firsts(source: ast.expr, target: ast.expr) -> dict[str, ast.expr]:
    """What a comprehension's names are in its first iteration, where that can be written down."""
    if isinstance(target, ast.Name) and isinstance(source, (ast.List, ast.Tuple)) and source.elts:
        return {target.id: source.elts[0]}
    if not isinstance(source, ast.Call) or not isinstance(target, ast.Tuple) or not source.args:
        return {}
    made = {"enumerate": [ast.Constant(0), _first(source.args[0])], "zip": [_first(item) for item in source.args]}
    values = made.get(ast.unparse(source.func), [])
    if len(values) != len(target.elts):
        return {}
    return {one.id: value for one, value in zip(target.elts, values) if isinstance(one, ast.Name)}


def _split(node: ast.Assign) -> Iterator[Replacement]:
    """``a, b = x, y`` as two statements, so that each can go by itself."""
    target, value = node.targets[0], node.value
    sequences = (ast.Tuple, ast.List)
    if len(node.targets) != 1 or not isinstance(target, sequences) or not isinstance(value, sequences):
        return
    if len(target.elts) == len(value.elts) and not any(isinstance(item, ast.Starred) for item in value.elts):
        pairs = zip(target.elts, value.elts)
        yield [ast.copy_location(ast.Assign(targets=[one], value=other), node) for one, other in pairs]


def _bound(node: ast.With | ast.AsyncWith) -> list[ast.stmt]:
    """What ``as`` bound, bound to the context itself."""
    return [
        ast.Assign(targets=[item.optional_vars], value=item.context_expr)
        for item in node.items
        if item.optional_vars is not None
    ]


def _iterations(node: ast.For | ast.AsyncFor) -> Iterator[Replacement]:
    body = _once(node.body)
    yield body
    source, target = node.iter, node.target
    simple = isinstance(source, ast.Call) and isinstance(source.func, ast.Name) and bool(source.args)
    name = ast.unparse(source.func) if isinstance(source, ast.Call) and simple else ""
    if name == "range":
        yield [ast.Assign(targets=[target], value=ast.Constant(0)), *body]
    if name == "enumerate" and isinstance(source, ast.Call) and isinstance(target, ast.Tuple) and len(target.elts) == 2:
        yield type(node)(target=target.elts[1], iter=source.args[0], body=node.body, orelse=[])
        first = ast.Assign(targets=[target.elts[0]], value=ast.Constant(0))
        yield [first, type(node)(target=target.elts[1], iter=source.args[0], body=node.body, orelse=[])]
        yield [first, ast.Assign(targets=[target.elts[1]], value=_first(source.args[0])), *body]
    if (
        name == "zip"
        and isinstance(source, ast.Call)
        and isinstance(target, ast.Tuple)
        and len(target.elts) == len(source.args)
    ):
        pairs = zip(target.elts, source.args)
        yield [*(ast.Assign(targets=[one], value=_first(many)) for one, many in pairs), *body]
    if isinstance(source, (ast.List, ast.Tuple)) and source.elts:
        yield [ast.Assign(targets=[target], value=source.elts[0]), *body]
        yield [ast.Assign(targets=[target], value=source.elts[-1]), *body]
    yield [ast.Assign(targets=[target], value=_first(source)), *body]


def _first(source: ast.expr) -> ast.expr:
    """The first item of an iterable."""
    inner = ast.Call(func=ast.Name(id="iter", ctx=ast.Load()), args=[source], keywords=[])
    return ast.Call(func=ast.Name(id="next", ctx=ast.Load()), args=[inner], keywords=[])


def _once(body: list[ast.stmt]) -> list[ast.AST]:
    """A loop's body without the ``break`` and ``continue`` at its own level."""
    return [statement for statement in body if not isinstance(statement, (ast.Break, ast.Continue))]
