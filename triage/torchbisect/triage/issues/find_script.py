"""Find the script among the code blocks of an issue, and complete it as little as possible to make it run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from torchbisect.triage.issues.code_blocks import CodeBlock
from torchbisect.triage.issues.python_text import parses, repaired, syntax_error, tree_of
from torchbisect.triage.issues.script_facts import (
    asks_for_cuda,
    bound_names,
    calls_something,
    compiles,
    imported_packages,
    left_out,
    never_called,
    remarks_of_omission,
    unknown_names,
)

_LOG = re.compile(
    r"(?:\[rank\d{1,4}\]:\s{0,4})?Traceback \(most recent call last\)|\s{0,8}File \"[^\"\n]{1,300}\", line \d|"
    r"Collecting environment information|PyTorch version: |[VIWEC]\d{4} \d\d:\d\d:\d\d|[\w.]{0,200}Error: "
)
_SHELL = re.compile(
    r"\s{0,12}(?:\$ |# )?(?:python3?|pip3?|conda|curl|wget|git|export|CUDA_VISIBLE_DEVICES=\S+|TORCH\w*=\S+) "
)
_NOT_PYTHON = frozenset(
    {"bash", "sh", "shell", "console", "text", "txt", "plaintext", "cpp", "c++", "c", "cuda", "json", "yaml", "log"}
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
#: The most blocks that are looked at, those that are joined to one script, and the scripts that are tried.
_BLOCKS, _JOINED, _TRIED = 400, 8, 3

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


@dataclass(frozen=True)
class IssueScript:
    """The script of an issue.

    Attributes:
        text: the text to run.
        notes: the repairs to the text of the issue, a line each.
        unknown: names that it uses and never defines.
        left_out: the numbers of the lines where its author left something out.
        uncalled: the functions that it defines and never calls, if nothing compiled is called for this reason.
        error: the syntax error, if it has one.
        packages: the imports beside torch and the standard library.
        compiles: it calls ``torch.compile`` in any form.
        cuda: it asks for a GPU.
        blocks: the numbers of the code blocks that it was made of, the first of the issue being 1.
    """

    text: str
    notes: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    left_out: tuple[int, ...] = ()
    uncalled: tuple[str, ...] = ()
    error: str | None = None
    packages: tuple[str, ...] = ()
    compiles: bool = False
    cuda: bool = False
    blocks: tuple[int, ...] = ()

    @property
    def complete(self) -> bool:
        """True if nothing is seen to be missing."""
        return self.compiles and not (self.error or self.unknown or self.left_out or self.uncalled)


def find_scripts(found: Sequence[CodeBlock], variables: Iterable[tuple[str, str]] = ()) -> tuple[IssueScript, ...]:
    """Return the scripts among the blocks of an issue in the order to try them; none if no block could be one.

    The first is the most likely one, whether it is complete or not. Others follow only if they are complete: further
    blocks, and last all blocks in their order.

    Args:
        found: the blocks.
        variables: environment variables that the scripts set before they import torch.
    """
    scripts = [_repaired(number, block) for number, block in enumerate(found[:_BLOCKS], 1)]
    scripts = [_with_modules(script, found, scripts) for script in scripts]
    scored = [(_score(block, script), -number) for number, (block, script) in enumerate(zip(found, scripts))]
    usable = sorted((pair for pair in scored if pair[0] > 0), reverse=True)
    if not usable:
        return ()
    numbers = sorted(-number for _, number in usable)
    likely = [_completed(-number, numbers, scripts) for _, number in usable[: _TRIED + 1]]
    whole = [_joined([scripts[number] for number in numbers])] if 1 < len(numbers) <= _JOINED else []
    first, *others = [_with_findings(script, tuple(variables)) for script in (*likely, *whole)]
    others = [script for script in others if script.complete]
    distinct = {script.text: script for script in reversed((first, *others))}
    return tuple(reversed(distinct.values()))[:_TRIED]


def _repaired(number: int, block: CodeBlock) -> IssueScript:
    text, notes = repaired(block.text, block.language)
    text = text.strip("\n") + "\n"
    return IssueScript(text, notes, error=syntax_error(text), blocks=(number,))


def _with_modules(script: IssueScript, blocks: Sequence[CodeBlock], scripts: Sequence[IssueScript]) -> IssueScript:
    """Put other blocks of the issue before a script that imports them as modules (``model.py``)."""
    if script.error or "from " not in script.text:
        return script
    lines, found = script.text.split("\n"), []
    for node in tree_of(script.text).body:
        if not isinstance(node, ast.ImportFrom) or not node.module or any(alias.asname for alias in node.names):
            continue
        module = _module_block(node.module, {alias.name for alias in node.names}, script, blocks, scripts)
        if module is not None:
            lines[node.lineno - 1 : node.end_lineno] = [""] * ((node.end_lineno or node.lineno) - node.lineno + 1)
            found.append(module)
    text = "\n".join([*(module.text for module in found), *lines])
    if not found or not parses(text):
        return script
    note = "other code blocks of the issue, which it imports, were put before the script"
    blocks_used = tuple(number for one in (*found, script) for number in one.blocks)
    return replace(script, text=text, notes=(*script.notes, note), blocks=blocks_used)


def _module_block(
    name: str, names: set[str], script: IssueScript, blocks: Sequence[CodeBlock], scripts: Sequence[IssueScript]
) -> IssueScript | None:
    """Return the block that is said to be a module and binds these names."""
    label = re.compile(rf"(?<![\w.]){re.escape(name.lower())}\.py\b")
    for block, one in zip(blocks, scripts):
        first = one.text.split("\n", 1)[0].lower()
        labelled = label.search(block.before) or (first.startswith("#") and label.search(first))
        if labelled and one is not script and not one.error and names - {"*"} <= set(bound_names(one.text)):
            return one
    return None


def _score(block: CodeBlock, script: IssueScript) -> int:
    """Return a score for how likely a block is the script; 0 for a block that cannot be one."""
    text = script.text
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines or all(_SHELL.match(line) for line in lines):
        return 0
    imports_torch = any(line.lstrip().startswith(("import torch", "from torch")) for line in lines)
    if block.language in _NOT_PYTHON and (script.error or not imports_torch):
        return 0
    if script.error and any(map(_LOG.match, lines)):
        return 0
    torch_code = imports_torch or "torch." in text
    defines = any(line.lstrip().startswith(("import ", "from ", "def ", "class ")) for line in lines)
    compiled = compiles(text)
    if script.error and not (torch_code and defines):
        return 0
    if not torch_code and not compiled and not defines:
        return 0
    section, before = block.section, block.before
    score = 10
    score += 8 if compiled else 0
    score += 4 if imports_torch else 0
    score += 3 if calls_something(text) else 0
    score += 2 if block.language in ("python", "py", "python3", "pycon") else 0
    score += 2 if not section or re.search(r"bug|repro", section, re.IGNORECASE) else 0
    score += 3 if _MEANT.search(before) or re.search("repro", section, re.IGNORECASE) else 0
    score += 3 if _SMALLER.search(before) else 0
    score -= 7 if _NOT_MEANT.search(before) else 0
    score -= 9 if re.search(r"error logs|versions|environment", section, re.IGNORECASE) else 0
    score -= 9 if _GENERATED.search(text) else 0
    score -= 6 if script.error else 0
    return max(score, 1)


def _completed(best: int, others: Sequence[int], scripts: Sequence[IssueScript]) -> IssueScript:
    """Join the best block with earlier blocks that define its names, and with the next one that calls its own."""
    parts = [scripts[best]]
    needed = set(unknown_names(parts[0].text)) - {"torch"}
    for number in sorted((n for n in others if n < best), reverse=True):
        if len(parts) < _JOINED and needed and bound_names(scripts[number].text) & needed:
            parts.insert(0, scripts[number])
            needed = set(unknown_names(_joined(parts).text)) - {"torch"}
    text = _joined(parts).text
    if not calls_something(text) or not compiles(text):
        defined = bound_names(text)
        for number in sorted(n for n in others if n > best):
            if defined & set(unknown_names(scripts[number].text)) - {"torch"}:
                parts.append(scripts[number])
                break
    return _joined(parts)


def _joined(scripts: Sequence[IssueScript]) -> IssueScript:
    if len(scripts) == 1:
        return scripts[0]
    notes = [note for script in scripts for note in script.notes]
    text = "\n".join(script.text for script in scripts)
    blocks = tuple(number for script in scripts for number in script.blocks)
    return IssueScript(
        text,
        tuple(dict.fromkeys([*notes, "several code blocks of the issue were joined"])),
        error=syntax_error(text),
        blocks=blocks,
    )


def _with_findings(script: IssueScript, variables: Sequence[tuple[str, str]]) -> IssueScript:
    """Add the facts about a script that are known without running it, and what it lacks and certainly means."""
    if script.error:
        return replace(script, compiles=compiles(script.text))
    text, notes = script.text, list(script.notes)
    added = [COMMON_IMPORTS[name] for name in unknown_names(text) if name in COMMON_IMPORTS]
    if added:
        text = _with_first_lines(text, added)
        notes.append(f"missing imports were added: {', '.join(added)}")
    uncalled, callable_alone = never_called(text)
    if callable_alone is not None and not left_out(text):
        text = f"{text}\n{callable_alone}()\n"
        notes.append(f"{callable_alone} is defined and never called: a call was added")
        uncalled = ()
    notes += [
        f"the comment in line {number} may stand for code that was left out" for number in remarks_of_omission(text)[:3]
    ]
    if variables:
        text = _with_first_lines(
            text, ["import os", *(f'os.environ["{name}"] = "{value}"' for name, value in variables)]
        )
        notes.append(
            f"the issue sets {', '.join(f'{name}={value}' for name, value in variables)}: the script does so first"
        )
    return replace(
        script,
        text=text,
        notes=tuple(notes),
        unknown=tuple(unknown_names(text)),
        left_out=left_out(text),
        uncalled=uncalled,
        packages=imported_packages(text),
        compiles=compiles(text),
        cuda=asks_for_cuda(text),
    )


def _with_first_lines(text: str, added: Sequence[str]) -> str:
    """Put lines at the top of a script, after its docstring and ``__future__`` imports."""
    last = 0
    for number, node in enumerate(tree_of(text).body):
        docstring = number == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if docstring or (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            last = node.end_lineno or last
    lines = text.split("\n")
    result = "\n".join([*lines[:last], *added, *lines[last:]])
    return result if parses(result) else text
