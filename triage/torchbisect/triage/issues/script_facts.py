"""Facts about a script that are known without running it: its unknown names, imports, omissions, and compile calls."""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Iterable, Iterator

from torchbisect.minimizer.compile_reachability import compiles_but_never_calls
from torchbisect.minimizer.syntax.torch_names import TorchNames
from torchbisect.triage.issues.python_text import parses, tree_of

_COMPILE_WORDS = ("torch.compile", ".compile(", "dynamo.optimize", "import compile")
_OTHER_COMPILE = frozenset({"torch.compiler.compile", "torch._dynamo.optimize", "torch._dynamo.optimize_assert"})
_LEFT_OUT = re.compile(
    r"[ \t]{0,200}#[ \t]{0,8}(?:\.\.\.|…|your |rest of|other |more |some |omitted|snip|\[)", re.IGNORECASE
)
_CUDA = re.compile(r"""["']cuda(?::\d{1,2}|:\{)?|\.cuda\(""")
_EITHER_DEVICE = re.compile(r"""["']cuda(?::\d{1,2})?["'] if torch\.cuda\.is_available\(\) else""")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)

# Installing a package may run its authors' code with a network, outside of the sandbox. Anybody can publish a package
# and name it in an issue. So only well-known packages are installed.
_UNDER_THEIR_IMPORT = (
    "accelerate beartype datasets diffusers einops expecttest hypothesis jaxtyping lightning matplotlib networkx numpy "
    "omegaconf packaging pandas peft psutil pytest safetensors scipy sympy tensordict timm tokenizers torchao "
    "torchaudio torchvision tqdm transformers"
)
#: Packages that are installed if a stranger's script imports them, by the name of their import.
INSTALLABLE = {name: name for name in _UNDER_THEIR_IMPORT.split()} | {
    "cv2": "opencv-python-headless",
    "huggingface_hub": "huggingface-hub",
    "PIL": "pillow",
    "sklearn": "scikit-learn",
    "typing_extensions": "typing-extensions",
    "yaml": "pyyaml",
}


def installable(imports: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the packages to install for these imports, and the imports without an allowed package."""
    names = list(imports)
    known = tuple(INSTALLABLE[name] for name in names if name in INSTALLABLE)
    return known, tuple(name for name in names if name not in INSTALLABLE)


def compiles(text: str) -> bool:
    """Return true if a text calls ``torch.compile`` in any form; of a text that is not Python only the words count."""
    if not parses(text):
        return any(word in text for word in _COMPILE_WORDS)
    tree = tree_of(text)
    names = TorchNames.of(tree)
    return any(names.is_compile(node) or names.full_name(node) in _OTHER_COMPILE for node in ast.walk(tree))


def calls_something(text: str) -> bool:
    """Return true if the module's top level runs something beside definitions."""
    doing = [node for node in tree_of(text).body if not isinstance(node, (*_DEFINITIONS, ast.Import, ast.ImportFrom))]
    return any(isinstance(part, ast.Call) for node in doing for part in ast.walk(node))


def bound_names(text: str) -> set[str]:
    """Return all names that a text binds anywhere."""
    names = set()
    for node in ast.walk(tree_of(text)):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, _DEFINITIONS):
            names.add(node.name)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name.split(".")[0])
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            names.add(node.name)
    return names


def unknown_names(text: str) -> list[str]:
    """Return the names that a script uses and never binds, in the order of their first use."""
    tree = tree_of(text)
    if any(isinstance(n, ast.ImportFrom) and n.names[0].name == "*" for n in ast.walk(tree)):
        return []
    known = bound_names(text) | set(dir(builtins)) | {"__file__", "__name__"}
    used = [(n.lineno, n.col_offset, n.id) for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id not in known]
    return list(dict.fromkeys(name for _, _, name in sorted(used)))


def left_out(text: str) -> tuple[int, ...]:
    """Return the lines with a ``...`` that stands for omitted statements.

    It does not where it is the whole body of a class, a stub, an abstract method or an exception's handler.
    """
    return tuple(
        sorted(
            statement.lineno
            for statement, is_stub in _bodies(tree_of(text))
            if isinstance(statement, ast.Expr)
            and isinstance(statement.value, ast.Constant)
            and statement.value.value is ...
            and not is_stub
        )
    )


def remarks_of_omission(text: str) -> tuple[int, ...]:
    """Return the lines with a comment such as ``# ... other layers``. The script may be complete all the same."""
    return tuple(number for number, line in enumerate(text.split("\n"), 1) if _LEFT_OUT.match(line))


def _bodies(tree: ast.Module) -> Iterator[tuple[ast.stmt, bool]]:
    """Yield every statement, and true if a ``...`` there says that the body is empty on purpose."""
    interfaces = {
        id(item)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and any(_last_name(base) in ("Protocol", "ABC") for base in node.bases)
        for item in node.body
    }
    for node in ast.walk(tree):
        stub = isinstance(node, (ast.ClassDef, ast.ExceptHandler)) or (
            isinstance(node, _FUNCTIONS) and (bool(_markers(node)) or id(node) in interfaces)
        )
        for name in ("body", "orelse", "finalbody"):
            statements = getattr(node, name, None)
            for statement in statements if isinstance(statements, list) else ():
                yield statement, stub and name == "body"


def _markers(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """Return the decorators of a function that say that another one does its work."""
    names = [_last_name(item.func if isinstance(item, ast.Call) else item) for item in function.decorator_list]
    return [name for name in names if name in ("overload", "abstractmethod", "custom_op", "register_fake", "triton_op")]


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def imported_packages(text: str) -> tuple[str, ...]:
    """Return the imports of a script beside torch and the standard library."""
    names = set()
    for node in ast.walk(tree_of(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    return tuple(sorted(names - set(sys.stdlib_module_names) - {"torch", "triton", "functorch"}))


def asks_for_cuda(text: str) -> bool:
    """Return true if a script asks for a GPU; not if it takes one only where there is one."""
    return _CUDA.search(_EITHER_DEVICE.sub("", text)) is not None


def never_called(text: str) -> tuple[tuple[str, ...], str | None]:
    """Find the functions that a script defines and never calls, if nothing compiled is called for this reason.

    Returns:
        the names of the functions, and the one that could be called as it stands: it is the only one and needs no
        argument.
    """
    tree = tree_of(text)
    torch_names = TorchNames.of(tree)
    if not compiles_but_never_calls(tree, torch_names):
        return (), None
    mentioned = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    defined = [node for node in tree.body if isinstance(node, _FUNCTIONS) and node.name not in mentioned]
    # Where only the result of torch.compile is never called, compiling alone may fail.
    names = tuple(node.name for node in defined)
    alone = defined[0] if len(defined) == 1 and isinstance(defined[0], ast.FunctionDef) else None
    callable_alone = (
        alone is not None
        and _needs_no_argument(alone)
        and all(map(torch_names.mentions_compiler, alone.decorator_list))
    )
    return names, alone.name if alone is not None and callable_alone else None


def _needs_no_argument(function: ast.FunctionDef) -> bool:
    arguments = function.args
    positional = len(arguments.posonlyargs) + len(arguments.args)
    return positional == len(arguments.defaults) and all(arguments.kw_defaults)
