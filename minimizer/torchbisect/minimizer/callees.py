"""The ways to call in a script of its own what a recorded call called, on what it was called on.

A function at module level is called by its name. A method is called on its object as its constructor makes it. The
object may have changed since, or nothing may be known about how it was made, so a method also becomes a function::

    class History(nn.Module):               def advance(frames):
        def advance(self):                      frames[1:].copy_(frames[:-1].clone())
            self.frames[1:].copy_(
                self.frames[:-1].clone())       advance(torch.randn(12, 3))

with the attributes that it reads as parameters, or, where it sets them too, with an object that has only those. A
method that calls others keeps its object, which is given the attributes that it had. An object inside the compiled
call that can be made is only made: its method is inlined by other passes. A closure is called alone, as a
closure, and after what was done to the objects that it reads, such as hooks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from torchbisect.core.python_text import parse_python
from torchbisect.core.trace import Call, Trace
from torchbisect.minimizer.syntax.closures import extract_function, wrap_in_factory
from torchbisect.minimizer.syntax.edits import copied
from torchbisect.minimizer.syntax.names import all_names, fresh_name
from torchbisect.minimizer.syntax.scope import calls_python, in_own_scope
from torchbisect.minimizer.syntax.torch_names import TorchNames
from torchbisect.minimizer.syntax.tree import Function, expression, walk


@dataclass(frozen=True)
class Callee:
    """An expression to call, the definitions that it needs, and the arguments that come before those of the call."""

    called: ast.expr
    definitions: list[ast.stmt] = field(default_factory=list)
    first: list[ast.expr] = field(default_factory=list)


def callees(tree: ast.Module, call: Call, trace: Trace) -> Iterator[Callee]:
    """Yield the ways to call what a recorded call called, the plainest first."""
    if call.owner is not None or "." in call.function.replace(".<locals>.", ""):
        yield from _of_method(tree, call)
    elif "<locals>" not in call.function:
        yield Callee(ast.Name(id=call.function, ctx=ast.Load()))
    else:
        yield from _of_closure(tree, call, trace)


def _of_method(tree: ast.Module, call: Call) -> Iterator[Callee]:
    name = call.function.rsplit(".", 1)[-1]
    if call.owner_text is not None:
        yield Callee(_bound(expression(call.owner_text), name))
    method = _definition(tree, call) if call.root or call.owner_text is None else None
    if method is None or not method.args.args:
        return
    if not all(map(TorchNames.of(tree).mentions_compile, method.decorator_list)):
        return
    if any(item.text is None for item in call.attributes):
        return
    values = {item.name: expression(str(item.text)) for item in call.attributes}
    uses = _uses_of_self(method, values)
    if uses is not None:
        yield from _as_functions(tree, method, uses, values)
    elif call.owner_text is not None and values:
        owner = fresh_name("owner", all_names(tree))
        made: list[ast.stmt] = [_assign(ast.Name(id=owner, ctx=ast.Store()), expression(call.owner_text))]
        for attribute, value in values.items():
            target = ast.Attribute(value=ast.Name(id=owner, ctx=ast.Load()), attr=attribute, ctx=ast.Store())
            made.append(_assign(target, value))
        yield Callee(_bound(ast.Name(id=owner, ctx=ast.Load()), name), made)


def _bound(owner: ast.expr, method: str) -> ast.expr:
    """Return the bound method; of a module the module itself, which runs its hooks too."""
    return owner if method in ("forward", "__call__") else ast.Attribute(value=owner, attr=method, ctx=ast.Load())


def _assign(target: ast.expr, value: ast.expr) -> ast.Assign:
    return ast.Assign(targets=[target], value=value, lineno=0)


def _definition(tree: ast.Module, call: Call) -> ast.FunctionDef | None:
    functions = [node for node in walk(tree) if isinstance(node, ast.FunctionDef)]
    return next((node for node in functions if first_line(node) == call.line), None)


def _uses_of_self(method: ast.FunctionDef, values: dict[str, ast.expr]) -> list[ast.Attribute] | None:
    """Return the attributes of ``self`` in a method; ``None`` if it uses ``self`` otherwise or what has no value."""
    me = method.args.args[0].arg
    uses = [
        node
        for node in walk(method)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == me
    ]
    named = [node for node in walk(method) if isinstance(node, ast.Name) and node.id in (me, "super", "__class__")]
    known = all(node.attr in values or not isinstance(node.ctx, ast.Load) for node in uses)
    return uses if len(named) == len(uses) and known and not any(node.attr.startswith("__") for node in uses) else None


def _as_functions(
    tree: ast.Module, method: ast.FunctionDef, uses: list[ast.Attribute], values: dict[str, ast.expr]
) -> Iterator[Callee]:
    """Yield the method as a function of the attributes; and of an object with them, where it sets some."""
    read = list(dict.fromkeys(node.attr for node in uses if node.attr in values))
    name = fresh_name(method.name, all_names(tree, but=method))
    own = {id(node) for statement in method.body for node in in_own_scope(statement)}
    stored = [node for node in uses if not isinstance(node.ctx, ast.Load)]
    if all(id(node) in own for node in stored):
        taken = all_names(tree)
        names = {attribute: fresh_name(attribute, taken) for attribute in dict.fromkeys(node.attr for node in uses)}
        function = _AttributesAsNames(method.args.args[0].arg, names).visit(copied(method))
        assert isinstance(function, ast.FunctionDef)
        function.name, function.decorator_list = name, []
        function.args.args[:1] = [ast.arg(arg=names[attribute]) for attribute in read]
        yield Callee(ast.Name(id=name, ctx=ast.Load()), [function], [values[attribute] for attribute in read])
    if stored:
        function = copied(method)
        function.name, function.decorator_list = name, []
        holder = expression("types.SimpleNamespace()")
        assert isinstance(holder, ast.Call)
        holder.keywords = [ast.keyword(arg=attribute, value=values[attribute]) for attribute in read]
        yield Callee(ast.Name(id=name, ctx=ast.Load()), [function], [holder])


class _AttributesAsNames(ast.NodeTransformer):
    """Rewriter of ``self.x`` to the name that stands for ``x``."""

    def __init__(self, me: str, names: dict[str, str]) -> None:
        self.me = me
        self.names = names

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id == self.me:
            return ast.Name(id=self.names[node.attr], ctx=node.ctx)
        return self.generic_visit(node)


def _of_closure(tree: ast.Module, call: Call, trace: Trace) -> Iterator[Callee]:
    inner = _definition(tree, call)
    if inner is None:
        return
    definitions = extract_function(tree, inner, call.function, trace)
    yield Callee(ast.Name(id=inner.name, ctx=ast.Load()), definitions)
    if len(definitions) > 1:
        name = fresh_name("make", all_names(tree))
        made = ast.Call(func=ast.Name(id=name, ctx=ast.Load()), args=[], keywords=[])
        yield Callee(made, [wrap_in_factory(definitions, inner.name, name)])
    more = extract_function(tree, inner, call.function, trace, with_calls=True)
    if len(more) > len(definitions):
        yield Callee(ast.Name(id=inner.name, ctx=ast.Load()), more)


def first_line(node: ast.FunctionDef) -> int:
    """Return the line of a definition's first decorator, or of the definition: the one that a trace names."""
    return min([node.lineno, *(item.lineno for item in node.decorator_list)])


def compilable(
    tree: ast.Module, call: Call, callee: Callee, args: list[ast.expr], keywords: list[ast.keyword]
) -> Callee:
    """Return what is compiled for a call: the callee, or a function around it that has a tensor operation beside it."""
    if _may_operate_on_tensors(tree, call):
        return callee
    wrapper = _with_tensor_operation(callee.called, [*callee.first, *args], keywords, all_names(tree))
    first = [expression("torch.ones(1)"), *callee.first]
    return Callee(ast.Name(id=wrapper.name, ctx=ast.Load()), [*callee.definitions, wrapper], first)


def _may_operate_on_tensors(tree: ast.Module, call: Call) -> bool:
    """Tell whether a function may operate on a tensor: by arithmetic, or by a call of what is not Python's own."""
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
            if not foreign and not calls_python(node.func):
                return True
    return not functions


def _with_tensor_operation(
    called: ast.expr, args: list[ast.expr], keywords: list[ast.keyword], taken: set[str]
) -> ast.FunctionDef:
    """Return a function of a tensor and the arguments that makes the call and adds 1 to the tensor."""
    names = [f"arg{number}" for number in range(len(args))]
    given = [str(keyword.arg) for keyword in keywords]
    tensor = fresh_name("x", taken)
    heading = ", ".join([tensor, *names, *given])
    passed = ", ".join([*names, *(f"{name}={name}" for name in given)])
    lines = f"def {fresh_name('beside', taken)}({heading}):\n    return {ast.unparse(called)}({passed}), {tensor} + 1"
    function = parse_python(lines).body[0]
    assert isinstance(function, ast.FunctionDef)
    return function
