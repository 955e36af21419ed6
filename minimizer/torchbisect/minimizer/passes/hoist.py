"""Move a computation out of the compiled function, to where its result is an argument.

Before and after::

    @torch.compile                    @torch.compile
    def f(x, y):                      def f(z):
        return torch.acosh(x * y)         return torch.acosh(z)
    f(x, y)                           f(x * y)

One operation may need the very numbers that others made. Outside they are made by eager torch, and there the trace
knows them. The script may grow by a few nodes; where its result is an argument, a computation gives way to its value.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice

from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit, apply_or_none, copied
from torchbisect.minimizer.syntax.names import all_names, fresh_name, with_values
from torchbisect.minimizer.syntax.scope import body_of, bound_names, imported_names, only_call, variables_in
from torchbisect.minimizer.syntax.tree import count_nodes, parents, walk
from torchbisect.minimizer.unused import without_unused

MOST_QUESTIONS = 4
"""The most computations of one function that are tried."""
_AnyFunction = ast.FunctionDef | ast.Lambda
_COMPUTATIONS = (ast.Call, ast.BinOp, ast.Subscript)


def run(search: ReductionSearch) -> None:
    """Move out the largest computation that may go, of each function that is called in one place."""
    names = [item.name for item in search.tree.body if isinstance(item, ast.FunctionDef)]
    for function in (*names, *range(len(_lambdas(search.tree)))):
        any(map(search.attempt_rewrite, islice(_hoisted(search.tree, function), MOST_QUESTIONS)))


def _lambdas(tree: ast.Module) -> list[ast.Lambda]:
    return [node for node in walk(tree) if isinstance(node, ast.Lambda)]


def _hoisted(tree: ast.Module, name: str | int) -> Iterator[ast.Module]:
    """Yield the tree with each computation of a function moved out that is an operand of another, the largest first.

    A function has a name, or a number among the lambdas.
    """
    function, call = _function_and_call(tree, name)
    if function is None or call is None or not _is_plain(function, call):
        return
    values, tried = _single_values(function), set[str]()
    given = {item.arg for item in function.args.args}
    known = given | bound_names(tree.body) | imported_names(tree)
    operands = [(node, _written_out(node, values)) for node in _operands(function)]
    for node, whole in sorted(operands, key=lambda pair: -count_nodes(pair[1])):
        names = variables_in(whole)
        if given & names and names <= known and ast.dump(whole) not in tried:
            tried.add(ast.dump(whole))
            changed = _with_argument(tree, name, node, whole)
            if changed is not None:
                yield changed


def _function_and_call(tree: ast.Module, name: str | int) -> tuple[_AnyFunction | None, ast.Call | None]:
    """Return a function and its only call; a lambda is called where it stands, through ``torch.compile``."""
    if isinstance(name, str):
        found = next((item for item in tree.body if isinstance(item, ast.FunctionDef) and item.name == name), None)
        return found, None if found is None else only_call(tree, found)
    function = next(iter(_lambdas(tree)[name:]), None)  # there are fewer once one was moved out
    calls = [node for node in walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Call)]
    return function, next((node for node in calls if function in getattr(node.func, "args", [])), None)


def _is_plain(function: _AnyFunction, call: ast.Call) -> bool:
    """Tell whether a call gives each parameter of a function by its place."""
    given = function.args
    extra = [given.vararg, given.kwarg, *given.kwonlyargs, *given.posonlyargs, *given.defaults]
    starred = any(isinstance(item, ast.Starred) for item in call.args)
    return not any(extra) and not call.keywords and not starred and len(call.args) == len(given.args)


def _single_values(function: _AnyFunction) -> dict[str, ast.expr]:
    """Return the values of the local names that one assignment of the body binds and nothing else."""
    stored = [node.id for node in walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    return {
        item.targets[0].id: item.value
        for item in body_of(function)
        if isinstance(item, ast.Assign)
        and isinstance(item.targets[0], ast.Name)
        and stored.count(item.targets[0].id) == 1
    }


def _operands(function: _AnyFunction) -> Iterator[ast.expr]:
    """Yield the computations of a function that others of it take."""
    above = parents(function)
    for node in walk(function):
        outer = above.get(id(node))
        called = isinstance(outer, ast.Call) and node is outer.func
        if isinstance(node, _COMPUTATIONS) and isinstance(outer, (*_COMPUTATIONS, ast.Attribute)) and not called:
            yield node


def _written_out(node: ast.expr, values: dict[str, ast.expr]) -> ast.expr:
    """Return an expression with the values of local names in their place."""
    for _ in values:
        if any(isinstance(part, ast.Name) and part.id in values for part in walk(node)):
            node = with_values(node, values)
    return node


def _with_argument(tree: ast.Module, name: str | int, node: ast.expr, whole: ast.expr) -> ast.Module | None:
    """Return the tree in which a function has the result of a computation by a new first parameter."""
    parameter = fresh_name("z", all_names(tree))
    changed = apply_or_none(tree, [Edit.of(node, ast.Name(id=parameter, ctx=ast.Load()))])
    if changed is None:
        return None
    changed = without_unused(changed, since=tree)
    function, call = _function_and_call(changed, name)
    if function is None or call is None or not _is_plain(function, call):
        return None
    read = {part.id for item in body_of(function) for part in walk(item) if isinstance(part, ast.Name)}
    bound = {item.arg: value for item, value in zip(function.args.args, call.args, strict=True)}
    kept = [item for item in function.args.args if item.arg in read]
    given = copied(function.args)
    given.args = [ast.arg(arg=parameter), *kept]
    first = _named_first(changed, bound, whole, kept)
    values = [with_values(whole, bound), *(bound[item.arg] for item in kept)]
    statement = _statement_of(changed, call)
    moved = ast.Call(func=call.func, args=values, keywords=[])
    return apply_or_none(changed, [Edit(((function.args, given), (statement, [*first, statement]), (call, moved)))])


def _named_first(tree: ast.Module, bound: dict[str, ast.expr], whole: ast.expr, kept: list[ast.arg]) -> list[ast.stmt]:
    """Give names to the arguments that are needed several times, and return the assignments."""
    taken, first = all_names(tree), list[ast.stmt]()
    read = [part.id for part in walk(whole) if isinstance(part, ast.Name)] + [item.arg for item in kept]
    for parameter, value in bound.items():
        if read.count(parameter) > 1 and not isinstance(value, (ast.Name, ast.Constant)):
            name = fresh_name(f"{parameter}_", taken)
            taken.add(name)
            first.append(ast.Assign(targets=[ast.Name(id=name, ctx=ast.Store())], value=value))
            bound[parameter] = ast.Name(id=name, ctx=ast.Load())
    return first


def _statement_of(tree: ast.Module, node: ast.AST) -> ast.AST:
    above = parents(tree)
    while not isinstance(node, ast.stmt):
        node = above[id(node)]
    return node
