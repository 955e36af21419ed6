"""Reduce the script to one call of one of its functions, compiled, on rebuilt inputs.

Before and after::

    for batch in load(config):
        losses.append(train_step(torch.compile(encode), batch))

    torch.compile(encode)(torch.randn(4, 8))

A training script reaches its bug through data loading, configuration, a model of many layers and a loop. The trace
records every call on that way, with an expression that rebuilds each argument. So one question often removes nine
tenths of the script. The pass goes down from the compiled root, one call at a time, from the first that shows the
mismatch alone, or else from one of the last. Where no root does, it tries the root that shows it after earlier calls of
the same function, then one call of every function, the innermost first, and a few more with other arguments.

A call alone was not enough in several kinds of scripts, so more is kept or added. Statements that set global state of
torch (compiler flags, default dtype) are kept. ``callees`` has the ways to call what is a method or a closure, and
compiles a function without tensor operations beside one, because Dynamo skips a frame without any. The script stays as
it is when the bug needs what surrounds every call.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator

from torchbisect.core.python_text import parse_python
from torchbisect.core.trace import Call, Trace
from torchbisect.minimizer.callees import Callee, callees, compilable
from torchbisect.minimizer.global_statements import global_statements
from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.edits import Edit, apply, copied, tidy
from torchbisect.minimizer.syntax.names import all_names, fresh_name
from torchbisect.minimizer.syntax.registries import registered
from torchbisect.minimizer.syntax.torch_names import TorchNames
from torchbisect.minimizer.syntax.tree import expression, walk
from torchbisect.minimizer.syntax.unbound_names import with_imports
from torchbisect.minimizer.unused import recorded_attributes, without_unused

MOST_QUESTIONS = 16
"""The most questions that one run of this pass asks."""
MOST_IN_VAIN = 12
"""The most of them before one is answered yes."""
MOST_OTHERS = 3
"""The most calls that are tried at one depth after the first one of each function, with other arguments."""
MOST_EARLIER = 8
"""The most calls that are made before one that needs several."""


def run(search: ReductionSearch, backend: str | None = None) -> None:
    """Go down from the compiled root while a call inside shows the mismatch; if no root does, try every call."""
    if search.trace is None:
        return
    tree, trace, before = search.tree, search.trace, len(search.interestingness.requested)
    options = _compile_options(tree, backend)

    place, calls = search.interestingness.place, calls_to_try(trace)
    # What a call raises needs no backward pass, and what shows the mismatch without one needs none further inside.
    backward = not place.endswith(" ending")

    def may_ask() -> bool:
        asked = len(search.interestingness.requested) - before
        return asked < (MOST_IN_VAIN if search.tree is tree else MOST_QUESTIONS)

    def shows(call: Call) -> bool:
        for candidate in scripts_with_call(tree, call, trace, options):
            needed = backward or not _has_backward(candidate)
            if needed and may_ask() and search.attempt(candidate):
                return True
        return False

    named = _root_at(trace, place)
    inner = next((call for call in [*named, *_with_values(named)] if shows(call)), None)
    if inner is None and _isolate_later_call(search, named, trace, options, may_ask):
        return
    if inner is None and all(item.arg != "dynamic" for item in options):
        # Dynamo makes sizes and numbers dynamic that differ from those of an earlier call.
        given, options = options, [ast.keyword(arg="dynamic", value=ast.Constant(True)), *options]
        inner = next((call for call in named if shows(call)), None)
        options = options if inner is not None else given
    if inner is None:
        roots = [call for call in calls if call.root]
        others = _with_other_arguments((call for call in reversed(trace.calls) if call.root), roots)
        roots = [call for call in [*roots, *others] if call not in named]
        inner = next((call for call in [*roots, *_with_values(roots)] if shows(call)), None)
    if inner is None:
        others = _with_other_arguments((call for call in reversed(trace.calls) if call.compiled), calls)
        any(shows(call) for call in [*calls, *others])
    backward = backward and _has_backward(search.tree)
    while inner is not None:
        inside = [call for call in _calls_inside(trace, inner) if call.compiled]
        first = [call for call in inside if call in calls]
        inside = [*first, *_with_other_arguments(inside, first)]
        inner = next((call for call in inside if shows(call)), None)


def _root_at(trace: Trace, place: str) -> list[Call]:
    """Return the call of what is compiled at which the mismatch was seen, if the place names it and it was recorded.

    A backward pass is taken for the one of the call with the same number.
    """
    number = re.match(r"(?:call|backward) (\d+) ", place)
    return [call for call in trace.calls if number and call.root_number == int(number[1])]


def _with_other_arguments(calls: Iterable[Call], tried: list[Call], most: int = MOST_OTHERS) -> list[Call]:
    """Return the first calls that have other arguments, or another object, than those that were tried."""
    known = [_inputs(call) for call in tried]
    found: list[Call] = []
    for call in calls:
        if _inputs(call) not in known:
            known.append(_inputs(call))
            found.append(call)
    return found[:most]


def _with_values(calls: list[Call]) -> list[Call]:
    """Return the calls on the very numbers that they had: the mismatch may need one that is rarely drawn."""
    return [found for call in calls if (found := call.with_values()) is not None]


def _inputs(call: Call) -> tuple[object, ...]:
    return call.function, call.arguments, call.owner_text, call.attributes


def _calls_inside(trace: Trace, outer: Call) -> Iterator[Call]:
    """Yield the calls that a call made, then those that they made, and so on.

    Of one caller the last come first, because earlier effects are in the arguments of the last. A call that does not
    show the mismatch alone, or can't be written, is passed over: those that it made may do.
    """
    callers = [outer.number]
    while callers:
        made = [call for number in callers for call in reversed(trace.calls) if call.parent == number]
        yield from made
        callers = [call.number for call in made]


def backend_of(tree: ast.Module) -> str | None:
    """Return the backend that the script's own calls of ``torch.compile`` name as a constant, else ``None``."""
    torch_names = TorchNames.of(tree)
    for node in walk(tree):
        if isinstance(node, ast.Call) and (torch_names.is_compile(node) or torch_names.is_partial_compile(node)):
            for keyword in node.keywords:
                if (
                    keyword.arg == "backend"
                    and isinstance(keyword.value, ast.Constant)
                    and isinstance(keyword.value.value, str)
                ):
                    return keyword.value.value
    return None


def _compile_options(tree: ast.Module, backend: str | None) -> list[ast.keyword]:
    """Return the constant options of the script's first ``torch.compile``, with this backend."""
    torch_names = TorchNames.of(tree)
    calls = [node for node in walk(tree) if isinstance(node, ast.Call) and torch_names.names_compile(node.func)]
    given = [item for call in calls[:1] for item in call.keywords if item.arg in ("dynamic", "fullgraph", "mode")]
    found = [ast.keyword(arg=item.arg, value=item.value) for item in given if isinstance(item.value, ast.Constant)]
    return [*found, ast.keyword(arg="backend", value=ast.Constant(backend))] if backend else found


def calls_to_try(trace: Trace) -> list[Call]:
    """Return one call of each function that ran compiled, then the callers of the compiled roots.

    The innermost come first. A function's first call that raised stands for all its calls, else its first call.
    """
    depth: dict[int, int] = {}
    for call in trace.calls:
        depth[call.number] = depth.get(call.parent, -1) + 1 if call.parent is not None else 0
    by_number = {call.number: call for call in trace.calls}
    seen: set[tuple[str, int]] = set()
    inside: list[Call] = []
    for call in sorted(trace.calls, key=lambda call: not call.raised):
        if call.compiled and (call.function, call.line) not in seen:
            seen.add((call.function, call.line))
            inside.append(call)
    around: list[Call] = []
    for root in (call for call in inside if call.root):
        parent = root.parent
        while parent is not None and parent in by_number:
            call = by_number[parent]
            if (call.function, call.line) not in seen:
                seen.add((call.function, call.line))
                around.append(call)
            parent = call.parent
    inside.sort(key=lambda call: (-depth[call.number], call.number))
    return inside + around


def scripts_with_call(tree: ast.Module, call: Call, trace: Trace, options: list[ast.keyword]) -> Iterator[ast.Module]:
    """Return scripts that make the call directly: as it is, then followed by a backward pass.

    A function without an operation of torch is compiled beside one. Alone it would not be compiled at all, and the
    interpreter would do what it does to Python's own objects.
    """
    if any(argument.text is None for argument in call.arguments):
        return
    given = _arguments(call, _compiled_objects(trace), options)
    for callee in callees(tree, call, trace):
        yield from _scripts_with_callee(tree, call, callee, *given, options)


def _scripts_with_callee(
    tree: ast.Module,
    call: Call,
    callee: Callee,
    args: list[ast.expr],
    keywords: list[ast.keyword],
    options: list[ast.keyword],
) -> Iterator[ast.Module]:
    """Return the scripts that make the call in one way, after the definitions that it needs."""
    if call.compiled:
        callee = compilable(tree, call, callee, args, keywords)
    shared, args, keywords = _assigned_first([*callee.first, *args], keywords)
    value = _compile(callee.called, options) if call.compiled else callee.called
    invocation = ast.Call(func=value, args=args, keywords=keywords)
    preamble = [*global_statements(tree), *callee.definitions, *shared]
    gradients = call.compiled and _uses_gradients(tree)
    for ending in _endings(invocation, call.raised, call.differentiable if gradients else ()):
        whole = ast.Module(body=[*preamble, *ending], type_ignores=[])
        plain = with_imports(without_unused(tidy(copied(whole))))
        tables = [Edit.remove(decorator) for _, decorator in registered(plain)]
        if tables:  # what looks nothing up needs no tables
            yield with_imports(without_unused(apply(plain, tables)))
        yield plain
        if not _has_backward(plain) and (kept := recorded_attributes(tree)):
            # The mismatch may be in what a method counts, and only the rest of the script read that.
            yield with_imports(without_unused(tidy(copied(whole)), kept=kept))


def _isolate_later_call(
    search: ReductionSearch,
    named: list[Call],
    trace: Trace,
    options: list[ast.keyword],
    may_ask: Callable[[], bool],
) -> bool:
    """Make a call after earlier ones of the same function, then calls inside it, while they show the mismatch.

    What the first call compiled may be wrong for the second: it takes a guard that is missing, or state that is stale.
    """
    tree, calls, won = search.tree, [*named, *_with_values(named)], False
    while calls:
        for call in calls:
            scripts = _scripts_with_earlier_calls(tree, call, trace, options)
            if any(may_ask() and search.attempt(script) for script in scripts):
                calls, won = [inside for inside in _calls_inside(trace, call) if inside.compiled], True
                break
        else:
            return won
    return won


def _scripts_with_earlier_calls(
    tree: ast.Module, call: Call, trace: Trace, options: list[ast.keyword]
) -> Iterator[ast.Module]:
    """Return scripts that make a call after an earlier one: the first, which compiled it, or the one just before.

    Then one after several: what differs in them is dynamic in what the last of them compiled.
    """
    same = [one for one in trace.calls if one.compiled and (one.function, one.line) == (call.function, call.line)]
    earlier = [one for one in same if one.number < call.number]
    others = dict.fromkeys((*earlier[:1], *earlier[-1:]))
    for before in sorted(others, key=lambda one: _inputs(one) == _inputs(call)):
        yield from _scripts_with_calls(tree, [before, call], trace, options)
    several = _with_other_arguments(earlier, [call], most=MOST_EARLIER)
    if len(several) > 1:
        yield from _scripts_with_calls(tree, [*several, call], trace, options)


def _scripts_with_calls(
    tree: ast.Module, calls: list[Call], trace: Trace, options: list[ast.keyword]
) -> Iterator[ast.Module]:
    """Return scripts that make calls of one function in turn, compiled once."""
    if any(argument.text is None for call in calls for argument in call.arguments):
        return
    for callee in callees(tree, calls[-1], trace):
        arguments = [_arguments(one, set(), options) for one in calls]
        callee = compilable(tree, calls[-1], callee, *arguments[-1])
        name = fresh_name("compiled", all_names(tree))
        made = ast.Assign(targets=[ast.Name(id=name, ctx=ast.Store())], value=_compile(callee.called, options))
        statements: list[ast.stmt] = [*global_statements(tree), *callee.definitions, made]
        for args, keywords in arguments:
            shared, args, keywords = _assigned_first(args, keywords)
            invocation = ast.Call(
                func=ast.Name(id=name, ctx=ast.Load()), args=[*callee.first, *args], keywords=keywords
            )
            statements += [*shared, ast.Expr(invocation)]
        yield with_imports(without_unused(tidy(copied(ast.Module(body=statements, type_ignores=[])))))


def _uses_gradients(tree: ast.Module) -> bool:
    """Tell whether the script computes or reads a gradient."""
    return any(isinstance(node, ast.Attribute) and node.attr in ("backward", "grad") for node in walk(tree))


def _compiled_objects(trace: Trace) -> set[str]:
    """Return the expressions that rebuild the objects that the script compiles."""
    found = set()
    for call in trace.calls:
        if call.root:
            found.add(call.owner_text if call.owner_text is not None else call.function)
    return found


def _arguments(call: Call, roots: set[str], options: list[ast.keyword]) -> tuple[list[ast.expr], list[ast.keyword]]:
    """Return the rebuilt arguments. A compiled object is compiled, unless the call itself runs compiled."""
    args: list[ast.expr] = []
    keywords: list[ast.keyword] = []
    for argument in call.arguments:
        assert argument.text is not None
        value = expression(argument.text)
        if not call.compiled and argument.text in roots:
            value = _compile(value, options)
        if argument.name.startswith("**"):
            keywords.append(ast.keyword(arg=argument.name[2:], value=value))
        elif keywords and not argument.name.startswith("*"):
            keywords.append(ast.keyword(arg=argument.name, value=value))
        else:
            args.append(value)
    return args, keywords


def _assigned_first(
    args: list[ast.expr], keywords: list[ast.keyword]
) -> tuple[list[ast.stmt], list[ast.expr], list[ast.keyword]]:
    """Return the assignments that arguments make by ``:=``, as tensors of one storage do, and what is left of them."""
    assignments: list[ast.stmt] = []

    class Names(ast.NodeTransformer):
        def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
            target = ast.Name(id=node.target.id, ctx=ast.Store())
            assignments.append(ast.Assign(targets=[target], value=node.value))
            return ast.Name(id=node.target.id, ctx=ast.Load())

    names = Names()
    given = [names.visit(value) for value in args]
    return assignments, given, [ast.keyword(arg=item.arg, value=names.visit(item.value)) for item in keywords]


def _compile(value: ast.expr, options: list[ast.keyword]) -> ast.expr:
    func = ast.Attribute(value=ast.Name(id="torch", ctx=ast.Load()), attr="compile", ctx=ast.Load())
    return ast.Call(func=func, args=[value], keywords=options)


def _endings(invocation: ast.expr, raised: str, differentiable: tuple[str, ...]) -> Iterator[list[ast.stmt]]:
    """Return statements that make the call: with what it raises caught, or followed by a backward pass.

    ``differentiable`` is what follows the result to give the tensors at which a backward pass may begin.
    """
    if raised:
        caught = ast.ExceptHandler(type=ast.Name(id=raised, ctx=ast.Load()), name=None, body=[ast.Pass()])
        yield [ast.Try(body=[ast.Expr(invocation)], handlers=[caught], orelse=[], finalbody=[])]
        return
    yield [ast.Expr(invocation)]
    for path in differentiable:
        out = ast.Assign(targets=[ast.Name(id="out", ctx=ast.Store())], value=invocation)
        yield [out, *parse_python(f"out{path}.sum().backward()").body]


def _has_backward(tree: ast.Module) -> bool:
    """Tell whether the last statement of a script is a backward pass."""
    return ast.unparse(tree.body[-1]).endswith(".backward()")
