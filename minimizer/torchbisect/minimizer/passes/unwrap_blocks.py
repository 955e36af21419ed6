"""Replace a block by its body, or by what is left of it.

Before and after::

    with torch.no_grad():             y = torch.relu(x @ w) + 1
        for _ in range(3):
            y = torch.relu(x @ w) + 1

Contexts, conditions and loops surround a bug and are rarely needed for it. A loop becomes one iteration, with its
variable bound to the first item. The functions that a block defines move before it. A condition that the mismatch
needs becomes a factor of a value::

    if a in b:                        y = y * (a in b)
        y = torch.zeros(1)

Loops whose body the mismatch needs more than once stay.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Iterator

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edit_keys import edit_keys
from torchbisect.minimizer.syntax.edits import Edit, Replacement, apply, copied
from torchbisect.minimizer.syntax.loops import body_once
from torchbisect.minimizer.syntax.names import substituted, with_values
from torchbisect.minimizer.syntax.scope import bound_names
from torchbisect.minimizer.syntax.tree import Comprehension, Function, bodies, product, walk

MOST_UNROLLED = 4
"""A loop over more items than these is not written out."""
_NUMBERED_PATH = re.compile(r"\.[1-9][0-9]*\b")


def run(search: ReductionSearch, finish: Callable[[ReductionSearch], None]) -> None:
    """Replace all blocks at once, then one by one, the outermost first; then expand blocks that may shrink.

    ``finish`` shrinks a script that an expanded block has made larger.
    """
    firsts: dict[int, Edit] = {}
    for edit in _block_edits(search.tree):
        firsts.setdefault(id(edit.changes[0][0]), edit)
    if len(firsts) > 1:
        search.delta_debug(list(firsts.values()))
    search.scan(_block_edits)
    while any(search.pump_once(name, tree, finish, 8) for name, tree in _expanded_blocks(search.tree)):
        pass


def _expanded_blocks(tree: ast.Module) -> Iterator[tuple[str, ast.Module]]:
    """Return trees with a loop written out, with its first iteration, or with a context's entry call, by names."""
    key = edit_keys(tree)
    edits: list[Edit] = []
    for node in walk(tree):
        if isinstance(node, ast.For):
            unrolled = _unrolled(tree, node)
            edits += [unrolled] if unrolled is not None else []
            for replacement in _iterations(node):
                if isinstance(replacement, list) and replacement and replacement[0] not in node.body:
                    edits.append(Edit.of(node, replacement))
        elif isinstance(node, ast.With) and len(node.items) == 1:
            edits.append(Edit.of(node, [_enter_call(node.items[0]), *node.body]))
    yield from ((key(edit), apply(tree, [edit])) for edit in edits)


def _enter_call(item: ast.withitem) -> ast.stmt:
    """Return the call that entering a context makes, without the context."""
    entered = ast.Call(ast.Attribute(item.context_expr, "__enter__", ast.Load()), [], [])
    if item.optional_vars is None:
        return ast.Expr(entered)
    return ast.Assign(targets=[item.optional_vars], value=entered)


def _block_edits(tree: ast.Module) -> Iterator[Edit]:
    """Return the edits that replace each block, the likeliest first."""
    parameters, later = _parameter_names(tree), list(_first_items(tree))
    for node in walk(tree):
        if isinstance(node, ast.For):
            yield from (Edit.of(node, replacement) for replacement in _over_parameters(node, parameters))
            unrolled = _unrolled(tree, node)
            if unrolled is not None:
                yield unrolled
        for replacement in _replacements(node):
            yield Edit.of(node, replacement)
            if later and isinstance(node, Comprehension) and isinstance(replacement, ast.List):
                yield Edit(((node, replacement), *later))
        if isinstance(node, (ast.For, ast.While, ast.With, ast.Try, ast.If)):
            yield from (Edit.of(node, replacement) for replacement in _definitions_first(node))
    yield from _chosen_results(tree)


def _chosen_results(tree: ast.Module) -> Iterator[Edit]:
    """Return the edits that make one ``return`` of ``if a: return b`` and ``return c``, with the condition a factor."""
    for _, body in bodies(tree):
        for first, second in itertools.pairwise(body):
            if isinstance(first, ast.If) and isinstance(second, ast.Return) and not first.orelse:
                results = [item.value for item in (second, first.body[0]) if isinstance(item, ast.Return)]
                for value in filter(None, results):
                    yield Edit(((first, None), (second, ast.Return(product(value, first.test)))))


def _first_items(tree: ast.Module) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Return changes of every index and every number in a dotted path to 0, for a list that keeps one item."""
    for node in walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and type(node.slice.value) is int:
            if node.slice.value > 0:
                yield node.slice, ast.Constant(0)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _NUMBERED_PATH.search(node.value):
            yield node, ast.Constant(_NUMBERED_PATH.sub(".0", node.value))


def _unrolled(tree: ast.Module, node: ast.For) -> Edit | None:
    """Return the edit that writes out a loop, and removes its list or gives the list's name to its one item."""
    source, gone = node.iter, list[ast.AST]()
    if isinstance(source, ast.Name):
        named = source.id
        bound = [item for item in walk(tree) if isinstance(item, ast.Assign) and ast.unparse(item.targets[0]) == named]
        if len(bound) == 1 and sum(isinstance(item, ast.Name) and item.id == named for item in walk(tree)) == 2:
            source, gone = bound[0].value, [*bound]
    items, body = _literal_items(source), list[ast.stmt]()
    kept = node.orelse or any(isinstance(item, (ast.Break, ast.Continue)) for item in walk(node))
    if kept or not 0 < len(items) <= MOST_UNROLLED or bound_names([node.target]) & bound_names(node.body):
        return None
    if gone and len(items) == 1 and isinstance(node.target, ast.Name) and isinstance(node.iter, ast.Name):
        body = [substituted(item, {}, {node.target.id: node.iter}) for item in node.body]
        return Edit(((node, [*body]), (source, items[0])))
    for value in items:
        if isinstance(node.target, ast.Name) and all(isinstance(item, (ast.Name, ast.Constant)) for item in items):
            body += [substituted(item, {}, {node.target.id: value}) for item in node.body]
        else:
            body += [copied(item) for item in (ast.Assign(targets=[node.target], value=value), *node.body)]
    return Edit(((node, [*body]), *((item, None) for item in gone)))


def _literal_items(source: ast.expr) -> list[ast.expr]:
    """Return what an iteration over a literal yields; an empty list where the text does not tell."""
    if isinstance(source, (ast.List, ast.Tuple)):
        return [] if any(isinstance(item, ast.Starred) for item in source.elts) else source.elts
    method = source.func if isinstance(source, ast.Call) and not source.args else None
    if not isinstance(method, ast.Attribute) or not isinstance(method.value, ast.Dict):
        return []
    keys, values = [key for key in method.value.keys if key is not None], method.value.values
    if len(keys) < len(values) or method.attr not in ("items", "values"):
        return []
    pairs = [ast.Tuple(elts=[*pair], ctx=ast.Load()) for pair in zip(keys, values)]
    return [*pairs] if method.attr == "items" else values


def _written_out(node: ast.ListComp | ast.GeneratorExp) -> Iterator[ast.List]:
    """Return the list of a comprehension over a literal with each of its items written down."""
    generator, found = node.generators[0], list[ast.expr]()
    items = _literal_items(generator.iter)
    if len(node.generators) > 1 or generator.ifs or not 0 < len(items) <= MOST_UNROLLED:
        return
    for value in items:
        names = generator.target.elts if isinstance(generator.target, ast.Tuple) else [generator.target]
        values = value.elts if isinstance(generator.target, ast.Tuple) and isinstance(value, ast.Tuple) else [value]
        if len(names) != len(values) or not all(isinstance(name, ast.Name) for name in names):
            return
        bound = {name.id: item for name, item in zip(names, values) if isinstance(name, ast.Name)}
        found.append(with_values(node.elt, bound))
    yield ast.List(elts=found, ctx=ast.Load())


def _parameter_names(tree: ast.Module) -> list[str]:
    """Return the names of the attributes to which the script assigns a ``Parameter``."""
    return [
        node.targets[0].attr
        for node in walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Attribute)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func).endswith("Parameter")
    ]


def _over_parameters(node: ast.For, names: list[str]) -> Iterator[Replacement]:
    """Return ``for p in model.parameters()`` with ``p`` as each parameter by name, as the first may be wrong."""
    source, target = node.iter, node.target
    if not isinstance(source, ast.Call) or not isinstance(source.func, ast.Attribute):
        return
    if source.func.attr == "named_parameters" and isinstance(target, ast.Tuple) and len(target.elts) == 2:
        target = target.elts[1]
    elif source.func.attr != "parameters":
        return
    for name in names:
        weight = ast.Attribute(value=source.func.value, attr=name, ctx=ast.Load())
        yield [ast.Assign(targets=[target], value=weight), *body_once(node.body)]


def _definitions_first(node: ast.For | ast.While | ast.With | ast.Try | ast.If) -> Iterator[Replacement]:
    """Return the functions and classes that a block defines, and then the block without them."""
    made = [item for item in node.body if isinstance(item, (*Function, ast.ClassDef))]
    rest = [item for item in node.body if item not in made]
    if made and rest:
        block = type(node)(**{name: getattr(node, name) for name in node._fields})
        block.body = rest
        yield [*made, block]


def _replacements(node: ast.AST) -> Iterator[Replacement]:
    """Return what may take the place of a statement or comprehension."""
    if isinstance(node, ast.Assign):
        yield from _split_assignment(node)
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        yield [*_context_bindings(node), *node.body]
        if len(node.items) > 1:
            for item in node.items:
                kept = [other for other in node.items if other is not item]
                yield type(node)(items=kept, body=node.body)
    elif isinstance(node, ast.If):
        yield list(node.body)
        if all(isinstance(item, ast.Pass) for item in node.body):
            yield [ast.Expr(node.test), *node.orelse]
        if node.orelse:
            yield list(node.orelse)
            yield ast.If(test=node.test, body=node.body, orelse=[])
        yield from _as_factor(node)
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        yield from _iterations(node)
    elif isinstance(node, ast.While):
        yield list[ast.AST](body_once(node.body))
    elif isinstance(node, ast.Try):
        yield [*node.body, *node.orelse, *node.finalbody]
        if len(node.body) > 1:
            # Mostly the last statement raises the exception that is caught.
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
        firsts = _first_bindings(source, target)
        if firsts:
            yield ast.List(elts=[with_values(node.elt, firsts)], ctx=ast.Load())
        elif not any(isinstance(item, ast.Name) and item.id in bound_names([target]) for item in walk(node.elt)):
            yield ast.List(elts=[node.elt], ctx=ast.Load())
        if isinstance(generator.iter, ast.Call) and isinstance(generator.iter.func, ast.Name):
            yield ast.List(elts=[node.elt], ctx=ast.Load())
        yield generator.iter
        yield from _written_out(node)
    elif isinstance(node, ast.IfExp):
        yield node.body
        yield node.orelse


def _as_factor(node: ast.If) -> Iterator[Replacement]:
    """Return the one statement of an ``if`` with the condition as a factor: that shows it, whatever the values are."""
    chosen = node.body[0]
    if len(node.body) > 1 or len(node.orelse) > 1:
        return
    if isinstance(chosen, ast.AugAssign):
        yield ast.AugAssign(target=chosen.target, op=chosen.op, value=node.test)
    elif isinstance(chosen, ast.Assign) and isinstance(chosen.targets[0], ast.Name):
        named = ast.Name(id=chosen.targets[0].id, ctx=ast.Load())
        others = [item.value for item in node.orelse if isinstance(item, ast.Assign)]
        for value in (*others, named, chosen.value):
            yield ast.Assign(targets=chosen.targets, value=product(value, node.test))


def _first_bindings(source: ast.expr, target: ast.expr) -> dict[str, ast.expr]:
    """Return the values of a comprehension's names in its first iteration, where they can be written down."""
    if isinstance(target, ast.Name) and isinstance(source, (ast.List, ast.Tuple)) and source.elts:
        return {target.id: source.elts[0]}
    if not isinstance(source, ast.Call) or not isinstance(target, ast.Tuple) or not source.args:
        return {}
    made = {
        "enumerate": [ast.Constant(0), _first_item(source.args[0])],
        "zip": [_first_item(item) for item in source.args],
    }
    values = made.get(ast.unparse(source.func), [])
    if len(values) != len(target.elts):
        return {}
    return {one.id: value for one, value in zip(target.elts, values) if isinstance(one, ast.Name)}


def _split_assignment(node: ast.Assign) -> Iterator[Replacement]:
    """Return ``a, b = x, y`` as two statements, so that each can be deleted by itself."""
    target, value = node.targets[0], node.value
    sequences = (ast.Tuple, ast.List)
    if len(node.targets) != 1 or not isinstance(target, sequences) or not isinstance(value, sequences):
        return
    if len(target.elts) == len(value.elts) and not any(isinstance(item, ast.Starred) for item in value.elts):
        pairs = zip(target.elts, value.elts)
        yield [ast.copy_location(ast.Assign(targets=[one], value=other), node) for one, other in pairs]


def _context_bindings(node: ast.With | ast.AsyncWith) -> list[ast.stmt]:
    """Return assignments that bind the names after ``as`` to the contexts themselves."""
    return [
        ast.Assign(targets=[item.optional_vars], value=item.context_expr)
        for item in node.items
        if item.optional_vars is not None
    ]


def _iterations(node: ast.For | ast.AsyncFor) -> Iterator[Replacement]:
    """Return bodies of a loop for one iteration, without and with its variable bound to an item."""
    body = list[ast.AST](body_once(node.body))
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
        yield [first, ast.Assign(targets=[target.elts[1]], value=_first_item(source.args[0])), *body]
    if (
        name == "zip"
        and isinstance(source, ast.Call)
        and isinstance(target, ast.Tuple)
        and len(target.elts) == len(source.args)
    ):
        pairs = zip(target.elts, source.args)
        yield [*(ast.Assign(targets=[one], value=_first_item(many)) for one, many in pairs), *body]
    if isinstance(source, (ast.ListComp, ast.GeneratorExp)) and len(source.generators) == 1:
        (over,) = source.generators
        made = ast.Assign(targets=[target], value=source.elt)
        if not over.ifs:
            yield type(node)(target=over.target, iter=over.iter, body=[made, *node.body], orelse=[])
    yield [ast.Assign(targets=[target], value=_first_item(source)), *body]
    if isinstance(source, (ast.List, ast.Tuple)) and source.elts:
        yield [ast.Assign(targets=[target], value=source.elts[-1]), *body]
    if name == "zip" and isinstance(source, ast.Call) and isinstance(target, ast.Tuple) and len(source.args) == 2:
        for (bound, once), (other, rest) in itertools.permutations(zip(target.elts, source.args), 2):
            binding = ast.Assign(targets=[bound], value=_first_item(once))
            yield [binding, type(node)(target=other, iter=rest, body=node.body, orelse=[])]


def _first_item(source: ast.expr) -> ast.expr:
    if isinstance(source, (ast.List, ast.Tuple)) and source.elts:
        return source.elts[0]
    inner = ast.Call(func=ast.Name(id="iter", ctx=ast.Load()), args=[source], keywords=[])
    return ast.Call(func=ast.Name(id="next", ctx=ast.Load()), args=[inner], keywords=[])
