"""Find the script among the code blocks of an issue, and repair it as little as possible to make it run."""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from torchbisect.triage.issues.code_blocks import CodeBlock, parses

_COMPILES = re.compile(r"\btorch\.compile\b|\.compile\(|_dynamo\.optimize\b|\bdynamo\.optimize\b|\bimport compile\b")
_LOG = re.compile(
    r"^(?:\[rank\d+\]:\s*)?Traceback \(most recent call last\)|^\s*File \"[^\"]+\", line \d+, in |"
    r"^Collecting environment information|^PyTorch version: |^[VIWEC]\d{4} \d\d:\d\d:\d\d|^\w+(?:\.\w+)*Error: ",
    re.MULTILINE,
)
_SHELL = re.compile(
    r"^\s*(?:\$ |# )?(?:python3?|pip3?|conda|curl|wget|git|export|CUDA_VISIBLE_DEVICES=\S+|TORCH\w*=\S+) "
)
_NOT_PYTHON = frozenset(
    {"bash", "sh", "shell", "console", "text", "txt", "cpp", "c++", "c", "diff", "json", "yaml", "log"}
)
# Code that torch generates: inductor's output, traced graphs. It parses, but it is not the reporter's script.
_GENERATED = re.compile(
    r"\basync_compile\b|\bextern_kernels\b|# AOT ID|torch\._inductor\.codecache|class GraphModule\(|"
    r"class (?:joint_helper|Repro)\(|load_config\(b'|# No stacktrace found"
)
_MEANT = re.compile(r"repro|script|following|code|example|fails?\b|bug|minimi[sz]|simplif|trigger|run this")
_SMALLER = re.compile(r"minimal|minimi[sz]|simplif|smaller|reduced|boils down")
_NOT_MEANT = re.compile(
    r"\bworks\b|work-?around|\bfixed\b|\bfix is\b|instead of|no error|without (?:the )?(?:bug|error)|"
    r"\bpasses\b|output code|generated|graph|\bpatch\b|does not (?:fail|reproduce)"
)
_LEFT_OUT = re.compile(
    r"^\s*#\s*(?:(?:\.\.\.|…).*|(?:your|rest of|other|more|some) .*|omitted.*|snip.*|\[.*\])\s*$", re.I | re.M
)

#: Imports that people often leave out, by the unknown name.
COMMON_IMPORTS = {
    "torch": "import torch",
    "nn": "from torch import nn",
    "F": "import torch.nn.functional as F",
    "optim": "from torch import optim",
    "Tensor": "from torch import Tensor",
    "dynamo": "import torch._dynamo as dynamo",
    "np": "import numpy as np",
    "numpy": "import numpy",
    "partial": "from functools import partial",
    "dataclass": "from dataclasses import dataclass",
    "nullcontext": "from contextlib import nullcontext",
    **{
        name: f"from typing import {name}" for name in ("Any", "Callable", "Dict", "List", "Optional", "Tuple", "Union")
    },
    **{
        name: f"import {name}"
        for name in ("contextlib", "copy", "functools", "itertools", "math", "operator", "os", "random", "sys", "time")
    },
}

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


@dataclass(frozen=True)
class IssueScript:
    """The script of an issue.

    Attributes:
        text: the text to run.
        notes: the repairs to the text of the issue, a line each.
        unknown: names that it uses and never defines.
        left_out: the numbers of the lines where its author left something out.
        error: the syntax error, if it has one.
        packages: the imports beside torch and the standard library.
        compiles: it calls ``torch.compile`` in any form.
        cuda: it asks for a GPU.
    """

    text: str
    notes: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    left_out: tuple[int, ...] = ()
    error: str | None = None
    packages: tuple[str, ...] = ()
    compiles: bool = False
    cuda: bool = False


def find_script(found: Sequence[CodeBlock]) -> IssueScript | None:
    """Return the script among the blocks of an issue, or ``None`` if no block could be one."""
    repaired = [repair(block.text) for block in found]
    scored = [(_score(block, script), number) for number, (block, script) in enumerate(zip(found, repaired))]
    usable = [(score, -number) for score, number in scored if score > 0]
    if not usable:
        return None
    best = -max(usable)[1]
    others = [number for score, number in scored if score > 0 and number != best]
    return _with_findings(_completed(best, others, repaired))


def _score(block: CodeBlock, script: IssueScript) -> int:
    """Return a score for how likely a block is the script; 0 for a block that cannot be one."""
    text = script.text
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines or block.language in _NOT_PYTHON or all(_SHELL.match(line) for line in lines):
        return 0
    if _LOG.search(text) and script.error:
        return 0
    torch_code = re.search(r"^\s*(?:import|from) torch\b|\btorch\.\w", text, re.MULTILINE) is not None
    if script.error and not (torch_code and re.search(r"^\s*(?:import|from|def|class) ", text, re.MULTILINE)):
        return 0
    if not torch_code and not _COMPILES.search(text) and not re.search(r"^\s*(?:def|class|import|from) ", text, re.M):
        return 0
    score = 10
    score += 8 if _COMPILES.search(text) else 0
    score += 4 if re.search(r"^\s*(?:import|from) torch\b", text, re.MULTILINE) else 0
    score += 3 if _calls_something(text) else 0
    score += 2 if block.language in ("python", "py", "python3", "pycon") else 0
    score += 2 if not block.section or re.search(r"bug|repro", block.section, re.IGNORECASE) else 0
    score += 3 if _MEANT.search(block.before) or re.search("repro", block.section, re.IGNORECASE) else 0
    score += 3 if _SMALLER.search(block.before) else 0
    score -= 7 if _NOT_MEANT.search(block.before) else 0
    score -= 9 if re.search(r"error logs|versions|environment", block.section, re.IGNORECASE) else 0
    score -= 9 if _GENERATED.search(text) else 0
    score -= 6 if script.error else 0
    return max(score, 1)


def _calls_something(text: str) -> bool:
    """Return true if the module's top level runs something beside definitions."""
    definitions = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
    doing = [node for node in _tree(text).body if not isinstance(node, definitions)]
    return any(isinstance(part, ast.Call) for node in doing for part in ast.walk(node))


def repair(text: str) -> IssueScript:
    """Remove prompts from a block, and repair the faults that keep it from being Python if the repair is certain."""
    notes: list[str] = []
    if re.search(r"^\s*(?:>>>|In \[\d+\]:)", text, re.MULTILINE):
        text = _without_prompts(text)
        notes.append("prompts and printed results were removed")
    plain = text.replace("\u00a0", " ").replace("“", '"').replace("”", '"').replace("‘", "'").replace("’", "'")
    if plain != text and not parses(text):
        text = plain
        notes.append("typographic quotes and spaces were replaced")
    magic = re.sub(r"(?m)^[ \t]*[%!].*\n?", "", text)
    if magic != text and not parses(text):
        text = magic
        notes.append("notebook commands were removed")
    dotted = re.sub(r"(?m)^([ \t]*)(?:…|\[\.\.\.\]|\.{4,})[ \t]*$", r"\1...", text)
    text = dotted if not parses(text) else text
    for _ in range(3):
        straight = _without_stray_indent(text)
        if straight is None:
            break
        text = straight
        notes.append("the wrong indentation of a line was removed")
    return IssueScript(text=text.strip("\n") + "\n", notes=tuple(dict.fromkeys(notes)), error=_syntax_error(text))


def _without_prompts(text: str) -> str:
    found = (re.match(r"^\s*(?:>>>|\.\.\.|In \[\d+\]:|\.{3,}:)(?: (.*))?$", line) for line in text.split("\n"))
    return "\n".join(match.group(1) or "" for match in found if match)


def _without_stray_indent(text: str) -> str | None:
    """Remove one stray indentation at module level; ``None`` if the text has another error or none."""
    try:
        ast.parse(text)
    except IndentationError as error:
        if not error.lineno or not re.search("unexpected indent|unindent does not match", str(error)):
            return None
        lines = text.split("\n")
        lines[error.lineno - 1] = lines[error.lineno - 1].lstrip()
        return "\n".join(lines)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        pass
    return None


def _syntax_error(text: str) -> str | None:
    try:
        ast.parse(text)
    except SyntaxError as error:
        return f"line {error.lineno or 1}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return str(error) or type(error).__name__
    return None


def _tree(text: str) -> ast.Module:
    """Return the syntax tree of a text, which is empty if the text is not Python."""
    return ast.parse(text) if parses(text) else ast.Module([], [])


def bound_names(tree: ast.AST) -> set[str]:
    """Return all names that a tree binds anywhere."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
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
    tree = _tree(text)
    if any(isinstance(n, ast.ImportFrom) and n.names[0].name == "*" for n in ast.walk(tree)):
        return []
    known = bound_names(tree) | set(dir(builtins)) | {"__file__", "__name__"}
    used = [(n.lineno, n.col_offset, n.id) for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id not in known]
    return list(dict.fromkeys(name for _, _, name in sorted(used)))


def _completed(best: int, others: Sequence[int], repaired: Sequence[IssueScript]) -> IssueScript:
    """Join the best block with earlier blocks that define its names, and with the next one that calls its own."""
    script, first = repaired[best], best
    for number in sorted((n for n in others if n < best), reverse=True):
        if bound_names(_tree(repaired[number].text)) & set(unknown_names(script.text)) - {"torch"}:
            script, first = _joined(repaired[number], script), number
    if not _calls_something(script.text) or not _COMPILES.search(script.text):
        defined = bound_names(_tree(script.text))
        for number in sorted(n for n in others if n > best and n != first):
            if defined & set(unknown_names(repaired[number].text)) - {"torch"}:
                script = _joined(script, repaired[number])
                break
    return script


def _joined(first: IssueScript, second: IssueScript) -> IssueScript:
    notes = dict.fromkeys([*first.notes, *second.notes, "several code blocks of the issue were joined"])
    return replace(first, text=first.text + "\n" + second.text, notes=tuple(notes), error=first.error or second.error)


def _with_findings(script: IssueScript) -> IssueScript:
    """Add the facts about a script that are known without running it, and its missing imports."""
    if script.error:
        return replace(script, compiles=_COMPILES.search(script.text) is not None)
    added = [COMMON_IMPORTS[name] for name in unknown_names(script.text) if name in COMMON_IMPORTS]
    text, notes = script.text, list(script.notes)
    if added:
        head = _future_imports(text)
        text = "\n".join([*text.split("\n")[:head], *added, *text.split("\n")[head:]])
        notes.append(f"missing imports were added: {', '.join(added)}")
    return replace(
        script,
        text=text,
        notes=tuple(notes),
        unknown=tuple(unknown_names(text)),
        left_out=_left_out(text),
        packages=_packages(text),
        compiles=_COMPILES.search(text) is not None,
        cuda=re.search(r"""["']cuda(?::\d+)?["']|\.cuda\(""", text) is not None,
    )


def _future_imports(text: str) -> int:
    """Return the number of lines at the top that must stay first: a docstring and ``__future__`` imports."""
    tree = _tree(text)
    last = 0
    for node in tree.body:
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if future or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and node is tree.body[0]):
            last = node.end_lineno or last
    return last


def _left_out(text: str) -> tuple[int, ...]:
    """Return the numbers of lines with a ``...`` statement, or with a comment about omitted code."""
    lines = {text[: found.start()].count("\n") + 1 for found in _LEFT_OUT.finditer(text)}
    tree = _tree(text)
    stubs = {statement for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for statement in node.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and node.value.value is ...:
            lines |= {node.lineno} if node not in stubs else set()
    return tuple(sorted(lines))


def _packages(text: str) -> tuple[str, ...]:
    names = set()
    for node in ast.walk(_tree(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    return tuple(sorted(names - set(sys.stdlib_module_names) - {"torch", "triton"}))


def installable(imports: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the packages to install for these imports, and the imports without an allowed package."""
    names = list(imports)
    known = tuple(INSTALLABLE[name] for name in names if name in INSTALLABLE)
    return known, tuple(name for name in names if name not in INSTALLABLE)
