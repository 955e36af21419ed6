"""What a candidate must not be: degenerate, or certain to fail for a reason that can be read off its text.

A reducer that only listens to the oracle ends in degenerate forms, and asks hundreds of times about scripts that
can't run. Both are counted as faults; a candidate is let through if it has no more of each than the user's own
script, whose bug may be about one of them.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from torchbisect.minimizer.compile_reachability import compiler, compiles, compiles_in_vain, names_compile
from torchbisect.minimizer.syntax.scope import OF_CONTAINERS, members_read
from torchbisect.minimizer.syntax.tree import Function, walk

_CONSTRUCTORS = frozenset(
    ("zeros", "ones", "empty", "full", "rand", "randn", "randint", "arange", "linspace", "eye", "tensor")
    + ("zeros_like", "ones_like", "rand_like", "randn_like")
)


def members(tree: ast.Module) -> frozenset[str]:
    """The fields and methods of the script's classes, by name."""
    found: set[str] = set()
    for owner in walk(tree):
        if isinstance(owner, ast.ClassDef):
            for item in owner.body:
                if isinstance(item, Function):
                    found.add(item.name)
                elif isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                    found.add(item.target.id)
                elif isinstance(item, ast.Assign):
                    found |= {target.id for target in item.targets if isinstance(target, ast.Name)}
    return frozenset(found)


def faults(tree: ast.Module, members: frozenset[str] = frozenset()) -> Counter[str]:
    """How often each fault is there.

    - ``empty``: a tensor of no elements by its constructor: ``torch.randn(0)``, ``torch.tensor([])``, ``torch.ones()``.
    - ``callable``, ``type``: a constructor or a type handed over where a tensor was: ``f(torch.randn)``.
    - ``arity``: a function of the script called with arguments that don't fit it.
    - ``no value``: the value of a function is used that returns none.
    - ``no super``: a module whose ``__init__`` doesn't call its base's.
    - ``no forward``, ``silent forward``: a module or autograd function that can't be called, or gives nothing.
    - ``no backward``, ``silent backward``, ``gradients``: an autograd function without a gradient for each argument.
    - ``no attribute NAME``: ``self.NAME``, or one of ``members`` of anything, is read and nothing makes it.
    - ``no compile``, ``compiled in vain``: nothing is compiled, or nothing calls it.
    """
    found: Counter[str] = Counter()
    nodes = list(walk(tree))
    for node in nodes:
        if isinstance(node, ast.Call):
            found["empty"] += _constructs(node.func) and _of_nothing(node)
            for value in [*node.args, *(keyword.value for keyword in node.keywords)]:
                found["callable"] += _constructs(value)
                found["type"] += isinstance(value, ast.Attribute) and value.attr in ("Tensor", "Parameter", "Module")
        elif isinstance(node, ast.ClassDef):
            found["no super"] += _lacks_super(node)
            found.update(_forward(node))
    found.update(_calls(tree, nodes))
    found.update(_attributes(nodes, members))
    found["no compile"] += not any(names_compile(node) for node in nodes)
    found["compiled in vain"] += compiles_in_vain(tree)
    return +found


def _forward(node: ast.ClassDef) -> Iterator[str]:
    bases = [ast.unparse(base).rsplit(".", 1)[-1] for base in node.bases]
    if not {"Module", "Function"} & set(bases):
        return
    methods = {item.name: item for item in node.body if isinstance(item, ast.FunctionDef)}
    for name in ("forward", "backward") if "Function" in bases else ("forward",):
        if name not in methods:
            yield f"no {name}"
        elif not _gives(methods[name]):
            yield f"silent {name}"
    if "Function" in bases and {"forward", "backward"} <= methods.keys():
        yield from _gradients(methods["backward"], methods["forward"], 0 if "setup_context" in methods else 1)


def _gradients(backward: ast.FunctionDef, forward: ast.FunctionDef, first: int) -> Iterator[str]:
    """Each tuple that a ``backward`` returns with fewer gradients than ``forward`` has arguments."""
    inputs = len(forward.args.posonlyargs) + len(forward.args.args) - first
    for node in walk(backward):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
            given = node.value.elts
            if len(given) < inputs and not any(isinstance(item, ast.Starred) for item in given):
                yield "gradients"


def _constructs(node: ast.expr) -> bool:
    """``torch.randn`` and its like."""
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "torch"
        and node.attr in _CONSTRUCTORS
    )


def _of_nothing(call: ast.Call) -> bool:
    assert isinstance(call.func, ast.Attribute)
    name = call.func.attr
    if name == "tensor":
        first = call.args[0] if call.args else None
        return first is None or (isinstance(first, (ast.List, ast.Tuple)) and not first.elts)
    if not call.args:
        return not any(keyword.arg in ("size", "end", "input") for keyword in call.keywords)
    if name in ("linspace", "randint") or (name == "arange" and len(call.args) > 1):
        return False
    sizes: list[ast.expr] = []
    for value in call.args[:1] if name == "full" else call.args:
        sizes += value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value]
    return any(isinstance(size, ast.Constant) and size.value in (0, False) for size in sizes)


def _lacks_super(node: ast.ClassDef) -> bool:
    """A class with a base and an ``__init__`` of its own that doesn't call the base's."""
    init = next((item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == "__init__"), None)
    if init is None or not node.bases:
        return False
    return not any(isinstance(item, ast.Attribute) and item.attr == "__init__" for item in walk(init))


def _calls(tree: ast.Module, nodes: list[ast.AST]) -> Iterator[str]:
    """Calls by name of what is defined once, with arguments that don't fit or a value that isn't there.

    A method's name may belong to other objects too, so of a method it is only said that its value isn't there.
    """
    defined: dict[str, ast.FunctionDef | ast.ClassDef | None] = {}
    methods = {id(item): owner for owner in nodes if isinstance(owner, ast.ClassDef) for item in owner.body}
    silent: dict[str, bool] = {}
    for node in nodes:
        if isinstance(node, ast.FunctionDef) and id(node) in methods:
            silent[node.name] = silent.get(node.name, True) and not _gives(node)
        elif isinstance(node, (*Function, ast.ClassDef)):
            once = node.name not in defined and all(compiles(item) for item in node.decorator_list)
            defined[node.name] = node if once and isinstance(node, (ast.FunctionDef, ast.ClassDef)) else None
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            defined[node.id] = None
        elif isinstance(node, ast.arg):
            defined[node.arg] = None
    ignored = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == "apply" and not _applies(defined, node):
                yield "arity"
            if silent.get(node.func.attr, False) and id(node) not in ignored:
                yield f"no value {node.func.attr}"
        elif isinstance(node, ast.Call) and (name := _called(node.func)) is not None:
            called = defined.get(name)
            if isinstance(called, ast.ClassDef):
                if not _makes(called, node):
                    yield "arity"
            elif called is not None:
                if not _fits(called.args, node, 0):
                    yield "arity"
                if id(node) not in ignored and not _gives(called):
                    yield "no value"


def _called(func: ast.expr) -> str | None:
    """``f`` of ``f`` and of ``torch.compile(f, ...)``."""
    if isinstance(func, ast.Call) and compiler(func.func) and func.args:
        func = func.args[0]
    return func.id if isinstance(func, ast.Name) else None


def _applies(defined: dict[str, ast.FunctionDef | ast.ClassDef | None], call: ast.Call) -> bool:
    """Whether a call of an autograd function's ``apply`` fits its ``forward``."""
    name = call.func.value if isinstance(call.func, ast.Attribute) else None
    owner = defined.get(name.id) if isinstance(name, ast.Name) else None
    if not isinstance(owner, ast.ClassDef):
        return True
    methods = {item.name: item for item in owner.body if isinstance(item, ast.FunctionDef)}
    forward = methods.get("forward")
    return forward is None or _fits(forward.args, call, 0 if "setup_context" in methods else 1)


def _makes(owner: ast.ClassDef, call: ast.Call) -> bool:
    """Whether a call's arguments fit a class's own ``__init__``; of a module without one, whether there are none."""
    for item in owner.body:
        if isinstance(item, ast.FunctionDef) and item.name == "__init__":
            return _fits(item.args, call, 1)
    return not (call.args and any(ast.unparse(base).endswith("Module") for base in owner.bases))


def _gives(function: ast.FunctionDef) -> bool:
    return any(
        isinstance(node, (ast.Yield, ast.YieldFrom)) or (isinstance(node, ast.Return) and node.value is not None)
        for node in walk(function)
    )


def _fits(arguments: ast.arguments, call: ast.Call, skip: int) -> bool:
    """Whether a call's arguments bind the parameters after the first ``skip``; with ``*`` or ``**`` they do."""
    if any(isinstance(item, ast.Starred) for item in call.args) or any(item.arg is None for item in call.keywords):
        return True
    positional = [item.arg for item in [*arguments.posonlyargs, *arguments.args]][skip:]
    if len(call.args) > len(positional) and arguments.vararg is None:
        return False
    named = {item.arg for item in call.keywords if item.arg is not None}
    only = [item.arg for item in arguments.kwonlyargs]
    if arguments.kwarg is None and not named <= set(positional) | set(only):
        return False
    required = positional[len(call.args) : max(0, len(positional) - len(arguments.defaults))]
    required += [name for name, default in zip(only, arguments.kw_defaults) if default is None]
    return set(required) <= named


# fmt: off
_SHARED = OF_CONTAINERS | {
    "apply", "backward", "children", "clamp", "clone", "data", "detach", "device", "div", "dtype", "eval", "exp",
    "fill_", "flatten", "float", "forward", "grad", "item", "load_state_dict", "log", "max", "mean", "min", "modules",
    "mul", "named_modules", "named_parameters", "norm", "parameters", "permute", "register_hook", "requires_grad_",
    "reshape", "shape", "size", "split", "step", "sum", "to", "train", "type", "view", "zero_grad",
}
# fmt: on
"""What Python's and torch's own objects have too: to read it says nothing of the script's classes."""


def _attributes(nodes: list[ast.AST], members: frozenset[str]) -> Iterator[str]:
    """What is read from ``self`` and made nowhere in the script; a base class's attributes count too, always."""
    made: set[str] = set()
    own = members - _SHARED
    read = {
        node.attr
        for node in members_read(nodes)
        if node.attr in own or (isinstance(node.value, ast.Name) and node.value.id == "self")
    }
    for node in nodes:
        if isinstance(node, ast.Attribute):
            if not isinstance(node.ctx, ast.Load):
                made.add(node.attr)
        elif isinstance(node, (*Function, ast.ClassDef)):
            made.add(node.name)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            made.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            made.add(node.value)
    yield from (f"no attribute {name}" for name in sorted(read - made))
