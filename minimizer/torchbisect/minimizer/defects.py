"""Count the defects of a candidate: degenerate forms, and errors that are certain from its text alone.

A reducer that relies on the interestingness test alone ends in degenerate scripts and asks hundreds of questions about
scripts that cannot run. The candidate filter compares these counts with those of the user's own script.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from torchbisect.minimizer.compile_reachability import compiles_but_never_calls
from torchbisect.minimizer.syntax.construction import constructor_of
from torchbisect.minimizer.syntax.scope import CONTAINER_METHODS, object_attributes
from torchbisect.minimizer.syntax.torch_names import LIKE_CONSTRUCTORS, TorchNames
from torchbisect.minimizer.syntax.tree import Function, walk


def class_members(tree: ast.Module) -> frozenset[str]:
    """Return the names of the fields and methods of the script's classes."""
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


def count_defects(tree: ast.Module, members: frozenset[str] = frozenset()) -> Counter[str]:
    """Count each defect of a script that it has; ``members`` are the ``class_members`` of the user's own script.

    - ``empty``: a tensor without elements by its constructor: ``torch.randn(0)``, ``torch.tensor([])``,
      ``torch.ones()``.
    - ``callable``, ``type``: a constructor or a type passed where a tensor was: ``f(torch.randn)``.
    - ``arity``: a function of the script called with arguments that its parameters do not accept.
    - ``no value``: the value of a function is used, but the function returns none.
    - ``no super``: a module whose ``__init__`` does not call its base's.
    - ``no forward``, ``silent forward``: a module or autograd function whose ``forward`` is missing or returns nothing.
    - ``no backward``, ``silent backward``: an autograd function whose ``backward`` is missing or returns nothing.
    - ``gradients``: an autograd function without a gradient for each argument.
    - ``no container``: a number or ``None`` is indexed, unpacked, iterated over or called.
    - ``no attribute NAME``: ``self.NAME``, or one of ``members`` of any object, is read but never set.
    - ``no compile``, ``compiled in vain``: nothing is compiled, or no statement calls it.
    """
    found: Counter[str] = Counter()
    nodes = list(walk(tree))
    torch_names = TorchNames.of_nodes(nodes)
    for node in nodes:
        if isinstance(node, ast.Call):
            found["empty"] += _is_empty_tensor(node, torch_names)
            for value in [*node.args, *(keyword.value for keyword in node.keywords)]:
                found["callable"] += _constructor(value, torch_names) is not None
                found["type"] += isinstance(value, ast.Attribute) and value.attr in ("Tensor", "Parameter", "Module")
        elif isinstance(node, ast.ClassDef):
            found["no super"] += _lacks_super(node)
            found.update(_forward_defects(node))
    found["no container"] = sum(map(_uses_number_as_container, nodes))
    found.update(_call_defects(nodes, torch_names))
    found.update(_attribute_defects(nodes, members))
    found["no compile"] += not any(map(torch_names.is_compiler_related, nodes))
    found["compiled in vain"] += compiles_but_never_calls(tree, torch_names)
    return +found


def _uses_number_as_container(node: ast.AST) -> bool:
    """Tell whether a node takes a number or ``None`` apart, which raises for certain."""
    used: ast.expr | None = None
    if isinstance(node, (ast.Subscript, ast.Starred)):
        used = node.value
    elif isinstance(node, ast.Call):
        used = node.func
    elif isinstance(node, (ast.For, ast.comprehension)):
        used = node.iter
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], (ast.Tuple, ast.List)):
        used = node.value
    return isinstance(used, ast.Constant) and not isinstance(used.value, (str, bytes))


def _forward_defects(node: ast.ClassDef) -> Iterator[str]:
    bases = [ast.unparse(base).rsplit(".", 1)[-1] for base in node.bases]
    if not {"Module", "Function"} & set(bases):
        return
    methods = {item.name: item for item in node.body if isinstance(item, ast.FunctionDef)}
    for name in ("forward", "backward") if "Function" in bases else ("forward",):
        if name not in methods:
            yield f"no {name}"
        elif not _returns_value(methods[name]):
            yield f"silent {name}"
    if "Function" in bases and {"forward", "backward"} <= methods.keys():
        yield from _gradient_defects(methods["backward"], methods["forward"], 0 if "setup_context" in methods else 1)


def _gradient_defects(backward: ast.FunctionDef, forward: ast.FunctionDef, first: int) -> Iterator[str]:
    """Yield a defect for each tuple of ``backward`` with fewer gradients than ``forward`` has arguments."""
    inputs = len(forward.args.posonlyargs) + len(forward.args.args) - first
    for node in walk(backward):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
            given = node.value.elts
            if len(given) < inputs and not any(isinstance(item, ast.Starred) for item in given):
                yield "gradients"


def _constructor(node: ast.expr, torch_names: TorchNames) -> str | None:
    """Return the name of the constructor that an expression names, those of the form ``ones_like`` included."""
    module, _, name = (torch_names.full_name(node) or "").rpartition(".")
    return name if module == "torch" and name in LIKE_CONSTRUCTORS else torch_names.constructor(node)


def _is_empty_tensor(call: ast.Call, torch_names: TorchNames) -> bool:
    name = _constructor(call.func, torch_names)
    if name is None:
        return False
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
    init = constructor_of(node)
    if init is None or not node.bases:
        return False
    return not any(isinstance(item, ast.Attribute) and item.attr == "__init__" for item in walk(init))


_Definitions = dict[str, "ast.FunctionDef | ast.ClassDef | None"]


def _call_defects(nodes: list[ast.AST], torch_names: TorchNames) -> Iterator[str]:
    """Yield calls of functions defined once whose arguments do not fit, or whose missing value is used.

    Other objects may have a method of the same name, so of a method only the missing value is counted.
    """
    defined, silent = _definitions(nodes, torch_names), _silent_methods(nodes)
    ignored = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Attribute):
            if node.func.attr == "apply" and not _fits_autograd_function(defined, node):
                yield "arity"
            if node.func.attr in silent and id(node) not in ignored:
                yield f"no value {node.func.attr}"
        elif (name := _called_name(node.func, torch_names)) is not None:
            called = defined.get(name)
            if isinstance(called, ast.ClassDef):
                if not _fits_class(called, node):
                    yield "arity"
            elif called is not None:
                if not _fits(called.args, node, 0):
                    yield "arity"
                if id(node) not in ignored and not _returns_value(called):
                    yield "no value"


def _definitions(nodes: list[ast.AST], torch_names: TorchNames) -> _Definitions:
    """Map each name to its function or class, or to ``None`` if it is bound in another way or more than once."""
    defined: _Definitions = {}
    methods = _methods(nodes)
    for node in nodes:
        if isinstance(node, ast.FunctionDef) and id(node) in methods:
            continue
        if isinstance(node, (*Function, ast.ClassDef)):
            once = node.name not in defined and all(map(torch_names.mentions_compiler, node.decorator_list))
            defined[node.name] = node if once and isinstance(node, (ast.FunctionDef, ast.ClassDef)) else None
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            defined[node.id] = None
        elif isinstance(node, ast.arg):
            defined[node.arg] = None
    return defined


def _silent_methods(nodes: list[ast.AST]) -> set[str]:
    """Return the names of methods that return a value in no class."""
    methods = _methods(nodes)
    own = [node for node in nodes if isinstance(node, ast.FunctionDef) and id(node) in methods]
    return {node.name for node in own} - {node.name for node in own if _returns_value(node)}


def _methods(nodes: list[ast.AST]) -> set[int]:
    return {id(item) for owner in nodes if isinstance(owner, ast.ClassDef) for item in owner.body}


def _called_name(func: ast.expr, torch_names: TorchNames) -> str | None:
    """Return ``f`` for a call of ``f`` or of ``torch.compile(f, ...)``."""
    if isinstance(func, ast.Call) and torch_names.is_compiler(func.func) and func.args:
        func = func.args[0]
    return func.id if isinstance(func, ast.Name) else None


def _fits_autograd_function(defined: _Definitions, call: ast.Call) -> bool:
    """Tell whether the arguments of an autograd function's ``apply`` fit its ``forward``."""
    name = call.func.value if isinstance(call.func, ast.Attribute) else None
    owner = defined.get(name.id) if isinstance(name, ast.Name) else None
    if not isinstance(owner, ast.ClassDef):
        return True
    methods = {item.name: item for item in owner.body if isinstance(item, ast.FunctionDef)}
    forward = methods.get("forward")
    return forward is None or _fits(forward.args, call, 0 if "setup_context" in methods else 1)


def _fits_class(owner: ast.ClassDef, call: ast.Call) -> bool:
    """Tell whether arguments fit a class's own ``__init__``; a module without one takes none."""
    for item in owner.body:
        if isinstance(item, ast.FunctionDef) and item.name == "__init__":
            return _fits(item.args, call, 1)
    return not (call.args and any(ast.unparse(base).endswith("Module") for base in owner.bases))


def _returns_value(function: ast.FunctionDef) -> bool:
    return any(
        isinstance(node, (ast.Yield, ast.YieldFrom)) or (isinstance(node, ast.Return) and node.value is not None)
        for node in walk(function)
    )


def _fits(arguments: ast.arguments, call: ast.Call, skip: int) -> bool:
    """Tell whether arguments bind the parameters after the first ``skip``; with ``*`` or ``**`` they may."""
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
_COMMON_ATTRIBUTES = CONTAINER_METHODS | {
    "apply", "backward", "children", "clamp", "clone", "data", "detach", "device", "div", "dtype", "eval", "exp",
    "fill_", "flatten", "float", "forward", "grad", "item", "load_state_dict", "log", "max", "mean", "min", "modules",
    "mul", "named_modules", "named_parameters", "norm", "parameters", "permute", "register_hook", "requires_grad_",
    "reshape", "shape", "size", "split", "step", "sum", "to", "train", "type", "view", "zero_grad",
}
# fmt: on
"""Attributes that Python's and torch's own objects have too, so that reading them is no use of a script's class."""


def _attribute_defects(nodes: list[ast.AST], members: frozenset[str]) -> Iterator[str]:
    """Yield the attributes read from ``self``, or among ``members``, that the script itself never sets."""
    made: set[str] = set()
    own = members - _COMMON_ATTRIBUTES
    read = {
        node.attr
        for node in object_attributes(nodes)
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
        elif isinstance(node, ast.keyword) and node.arg is not None:
            made.add(node.arg)  # types.SimpleNamespace(width=4)
    yield from (f"no attribute {name}" for name in sorted(read - made))
