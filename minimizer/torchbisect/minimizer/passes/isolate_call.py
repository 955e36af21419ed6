"""Only one callable of the script, compiled, on rebuilt inputs.

A training script reaches its bug through data loading, configuration, a model of many layers and a loop. The trace
knows every call on that way and what would rebuild its arguments, so "this function alone, on inputs of these shapes"
can be asked directly, and one question often removes nine tenths of the script. It goes from the compiled root down, a
level at a time; where no root shows it alone, every call is tried, the innermost first. Global side effects (config
flags, default dtype, seeds) are kept. Leaves the script alone when the bug needs what surrounds every call.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from torchbisect.core.trace import Call, Trace
from torchbisect.minimizer.search import ReductionSearch
from torchbisect.minimizer.syntax.closures import extract_function, wrap_in_factory
from torchbisect.minimizer.syntax.edits import copied, tidy
from torchbisect.minimizer.syntax.names import all_names, fresh_name
from torchbisect.minimizer.syntax.scope import CONTAINER_METHODS, bound_names
from torchbisect.minimizer.syntax.torch_names import TorchNames
from torchbisect.minimizer.syntax.tree import Function, expression, walk
from torchbisect.minimizer.unused import without_unused

MOST = 24
"""How many calls are asked about at most."""


def run(search: ReductionSearch, backend: str | None = None) -> None:
    """From the compiled root down, as long as a call inside shows it; where no root does, whatever call shows it."""
    if search.trace is None:
        return
    tree, trace, last = search.tree, search.trace, len(search.interestingness.requested) + MOST
    options = _options(tree, backend)

    def shows(call: Call) -> bool:
        for candidate in alone(tree, call, trace, options):
            if len(search.interestingness.requested) < last and search.attempt(candidate):
                return True
        return False

    calls = chosen(trace)
    inner = next((call for call in calls if call.root and shows(call)), None)
    if inner is None:
        any(shows(call) for call in calls)
    while inner is not None:
        inner = next((call for call in _inside(calls, inner) if shows(call)), None)


def _inside(calls: list[Call], outer: Call) -> list[Call]:
    """The calls that a call made, the last first: what went wrong before is in its arguments."""
    return [call for call in reversed(calls) if call.parent == outer.number]


def backend_of(tree: ast.Module) -> str | None:
    """The backend that the script's own calls of ``torch.compile`` name, where it is written out."""
    torch_names = TorchNames.of(tree)
    for node in walk(tree):
        if isinstance(node, ast.Call) and torch_names.is_compile(node):
            for keyword in node.keywords:
                if (
                    keyword.arg == "backend"
                    and isinstance(keyword.value, ast.Constant)
                    and isinstance(keyword.value.value, str)
                ):
                    return keyword.value.value
    return None


def _options(tree: ast.Module, backend: str | None) -> list[ast.keyword]:
    """What the script's first ``torch.compile`` is given beside a backend, where it is written out, and the backend."""
    torch_names = TorchNames.of(tree)
    calls = [node for node in walk(tree) if isinstance(node, ast.Call) and torch_names.names_compile(node.func)]
    given = [item for call in calls[:1] for item in call.keywords if item.arg in ("dynamic", "fullgraph", "mode")]
    found = [ast.keyword(arg=item.arg, value=item.value) for item in given if isinstance(item.value, ast.Constant)]
    return [*found, ast.keyword(arg="backend", value=ast.Constant(backend))] if backend else found


def chosen(trace: Trace) -> list[Call]:
    """One call of each function that ran compiled, the innermost and smallest first, then the callers of the roots.

    A function's first call that raised stands for all of them, else its first.
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


def alone(tree: ast.Module, call: Call, trace: Trace, options: list[ast.keyword]) -> Iterator[ast.Module]:
    """Scripts in which the call is made directly: as it is, then followed by a backward pass.

    A function with no operation of torch in it is compiled beside one: alone there would be nothing to compile, and
    what it does to the interpreter's own objects would be done by the interpreter.
    """
    if any(argument.text is None for argument in call.arguments):
        return
    given = _arguments(call, _compiled_texts(trace), options)
    for definitions, called in _callees(tree, call, trace):
        yield from _called(tree, call, definitions, called, *given, options)


def _called(
    tree: ast.Module,
    call: Call,
    definitions: list[ast.stmt],
    called: ast.expr,
    args: list[ast.expr],
    keywords: list[ast.keyword],
    options: list[ast.keyword],
) -> Iterator[ast.Module]:
    if call.compiled and not _operates(tree, call):
        wrapper = _beside_an_operation(called, args, keywords, all_names(tree))
        definitions, called = [*definitions, wrapper], ast.Name(id=wrapper.name, ctx=ast.Load())
        args = [expression("torch.ones(1)"), *args]
    value = _compile(called, options) if call.compiled else called
    invocation = ast.Call(func=value, args=args, keywords=keywords)
    preamble = [*_kept(tree), *definitions]
    for ending in _endings(invocation, call.compiled and _takes_gradients(tree), call.raised):
        yield without_unused(tidy(copied(ast.Module(body=[*preamble, *ending], type_ignores=[]))))


_OF_PYTHON = CONTAINER_METHODS | frozenset(dir(builtins))


def _operates(tree: ast.Module, call: Call) -> bool:
    """Whether a function may do something with a tensor: arithmetic, or a call of what isn't Python's own."""
    others = {
        alias.asname or alias.name.split(".")[0]
        for node in walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
        if not (getattr(node, "module", None) or alias.name).startswith("torch")
    }
    name = call.function.rsplit(".", 1)[-1]
    functions = [node for node in walk(tree) if isinstance(node, Function) and node.name == name]
    for node in (item for function in functions for item in walk(function)):
        if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.AugAssign)):
            return True
        if isinstance(node, ast.Call):
            root: ast.expr = node.func
            while isinstance(root, ast.Attribute):
                root = root.value
            foreign = isinstance(root, ast.Name) and root.id in others
            last = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if not foreign and last not in _OF_PYTHON:
                return True
    return not functions


def _beside_an_operation(
    called: ast.expr, args: list[ast.expr], keywords: list[ast.keyword], taken: set[str]
) -> ast.FunctionDef:
    """A function of a tensor and the arguments, which calls what is called and does something with the tensor."""
    names = [f"arg{number}" for number in range(len(args))]
    given = [str(keyword.arg) for keyword in keywords]
    tensor = fresh_name("x", taken)
    heading = ", ".join([tensor, *names, *given])
    passed = ", ".join([*names, *(f"{name}={name}" for name in given)])
    lines = f"def {fresh_name('beside', taken)}({heading}):\n    return {ast.unparse(called)}({passed}), {tensor} + 1"
    function = ast.parse(lines).body[0]
    assert isinstance(function, ast.FunctionDef)
    return function


def _takes_gradients(tree: ast.Module) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr in ("backward", "grad") for node in walk(tree))


def _compiled_texts(trace: Trace) -> set[str]:
    """What rebuilds the things that the script compiles."""
    found = set()
    for call in trace.calls:
        if call.root:
            found.add(call.owner_text if call.owner_text is not None else call.function)
    return found


def _arguments(call: Call, roots: set[str], options: list[ast.keyword]) -> tuple[list[ast.expr], list[ast.keyword]]:
    """The rebuilt arguments; one that is a compiled thing is compiled, if the call itself isn't inside one."""
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


def _compile(value: ast.expr, options: list[ast.keyword]) -> ast.expr:
    func = ast.Attribute(value=ast.Name(id="torch", ctx=ast.Load()), attr="compile", ctx=ast.Load())
    return ast.Call(func=func, args=[value], keywords=options)


def _callees(tree: ast.Module, call: Call, trace: Trace) -> Iterator[tuple[list[ast.stmt], ast.expr]]:
    """Further definitions that the call needs, and the expression to call.

    A closure on its own, then as a closure, then after what was done to the things that it reads.
    """
    if call.owner is not None or "." in call.function.replace(".<locals>.", ""):
        if call.owner_text is None:
            return
        owner = expression(call.owner_text)
        method = call.function.rsplit(".", 1)[-1]
        own = method in ("forward", "__call__")
        yield [], owner if own else ast.Attribute(value=owner, attr=method, ctx=ast.Load())
    elif "<locals>" not in call.function:
        yield [], ast.Name(id=call.function, ctx=ast.Load())
    else:
        functions = [node for node in walk(tree) if isinstance(node, ast.FunctionDef)]
        inner = next((node for node in functions if _first_line(node) == call.line), None)
        if inner is None:
            return
        definitions = extract_function(tree, inner, call.function, trace)
        yield definitions, ast.Name(id=inner.name, ctx=ast.Load())
        if len(definitions) > 1:
            name = fresh_name("make", all_names(tree))
            factory = ast.Name(id=name, ctx=ast.Load())
            yield [wrap_in_factory(definitions, inner.name, name)], ast.Call(func=factory, args=[], keywords=[])
        more = extract_function(tree, inner, call.function, trace, touched=True)
        if len(more) > len(definitions):
            yield more, ast.Name(id=inner.name, ctx=ast.Load())


def _first_line(node: ast.AST) -> int:
    return min([node.lineno, *(item.lineno for item in node.decorator_list)])  # type: ignore[attr-defined, no-any-return]


def _kept(tree: ast.Module) -> list[ast.stmt]:
    """Imports, definitions, plain global values, and what sets something of torch anywhere in the script."""
    found: list[ast.stmt] = []
    torch_names = TorchNames.of(tree)
    for statement in tree.body:
        if isinstance(statement, (ast.Import, ast.ImportFrom, *Function, ast.ClassDef)):
            found.append(_without_compile(statement, torch_names))
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)) and not _runs_user_code(tree, statement, torch_names):
            found.append(statement)
    settings = [node for node in walk(tree) if isinstance(node, ast.stmt) and _sets_torch(node)]
    torch_settings: dict[str, ast.stmt] = {}
    for node in settings:
        key = ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else ast.unparse(node)
        torch_settings.setdefault(key, node)
    imports = [alias for item in found if isinstance(item, ast.Import) for alias in item.names]
    if not any((alias.asname or alias.name) == "torch" for alias in imports):
        found.insert(0, ast.Import(names=[ast.alias(name="torch")]))
    return _bindable(found + [item for item in torch_settings.values() if item not in found])


def _bindable(statements: list[ast.stmt]) -> list[ast.stmt]:
    """Those of the statements that find their names: a setting inside a function may read what is only there."""
    while True:
        bound = bound_names(statements) | set(dir(builtins))
        kept = [
            item
            for item in statements
            if isinstance(item, (*Function, ast.ClassDef)) or _read(item) <= bound | bound_names([item])
        ]
        if len(kept) == len(statements):
            return kept
        statements = kept


def _read(statement: ast.stmt) -> set[str]:
    own = {node.id for node in walk(statement) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    own |= {node.arg for node in walk(statement) if isinstance(node, ast.arg)}
    return {node.id for node in walk(statement) if isinstance(node, ast.Name)} - own


def _without_compile(node: ast.stmt, torch_names: TorchNames) -> ast.stmt:
    """A definition that its decorator doesn't compile."""
    if isinstance(node, Function) and any(map(torch_names.mentions_compile, node.decorator_list)):
        new = copied(node)
        new.decorator_list = [item for item in node.decorator_list if not torch_names.mentions_compile(item)]
        return new
    return node


def _runs_user_code(tree: ast.Module, statement: ast.stmt, torch_names: TorchNames) -> bool:
    functions = {node.name for node in tree.body if isinstance(node, Function)}
    return torch_names.mentions_compile(statement) or any(
        isinstance(node, ast.Name) and node.id in functions for node in walk(statement)
    )


def _sets_torch(node: ast.stmt) -> bool:
    """``torch._dynamo.config.x = True``, ``torch.set_default_dtype(...)``: it can stand anywhere."""
    if isinstance(node, ast.Assign):
        target = ast.unparse(node.targets[0])
        return (
            target.startswith("torch.")
            and isinstance(node.value, ast.Constant)
            and node.value.value not in (False, None)
        )
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return ast.unparse(node.value.func).startswith(("torch.set_", "torch.backends.", "torch.use_"))
    return False


def _endings(invocation: ast.expr, gradients: bool, raised: str) -> Iterator[list[ast.stmt]]:
    """The call alone, with what it raises caught; its result given back through autograd."""
    if raised:
        caught = ast.ExceptHandler(type=ast.Name(id=raised, ctx=ast.Load()), name=None, body=[ast.Pass()])
        yield [ast.Try(body=[ast.Expr(invocation)], handlers=[caught], orelse=[], finalbody=[])]
        return
    yield [ast.Expr(invocation)]
    if gradients:
        yield [ast.Assign(targets=[ast.Name(id="out", ctx=ast.Store())], value=invocation), *_backward("out")]
        yield [ast.Assign(targets=[ast.Name(id="out", ctx=ast.Store())], value=invocation), *_backward("out[0]")]


def _backward(name: str) -> list[ast.stmt]:
    return ast.parse(f"{name}.sum().backward()").body
