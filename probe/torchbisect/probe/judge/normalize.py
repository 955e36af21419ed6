"""Normalize messages, places and values: remove what changes from one run, one script or one build to the next.

Two messages of one bug differ in shapes, addresses, paths, line and node numbers, counters and the user's own names.
What is left after ``normalize`` is the same for both; ``keywords`` goes further, to the words that a refactoring of
torch between two builds leaves alone. The shapes of torch's messages are those of ``torch/_dynamo/exc.py``,
``torch/_dynamo/utils.py`` and ``torch/_inductor/exc.py`` from 2.0 to 2.15. A shrunk script makes fewer calls and
returns other structures: all that stays of ``call 3 output['loss']`` is that it was an output.
"""

from __future__ import annotations

import re
from collections.abc import Set

LONGEST = 4000
"""Characters of a message that are looked at; a longer one (a dumped graph, a C++ compiler's output) is cut."""

# From this line on a message only repeats the user's script or gives advice.
_TRAILING_ADVICE = re.compile(
    r"^[^\S\n]*(?:from user code:|Set TORCHDYNAMO_VERBOSE|Set TORCH_LOGS|You can suppress this exception|"
    r"For more details about this graph break|Original traceback:|While executing |Hint:|"
    r"Developer debug context:|The above exception was the direct cause|Command:$|Minifier script written|"
    r"Please convert all Tensors to FakeTensors first)",
    re.MULTILINE,
)
_DROPPED_LINES = re.compile(
    r"^[^\S\n]*(?:args\[\d+\]:|kwargs:|File \"|~*\^+~*\s*$|import torch\._dynamo).*$", re.MULTILINE
)
_COLORS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_CALLS = re.compile(r"\b(?:FakeTensor|TensorVariable|TensorBox|StorageBox|Parameter|tensor|TensorSpec)\(")
_OPERANDS = re.compile(r"\(\*\(")
_SIZE = re.compile(r"torch\.Size\((\[[^\]]*\])\)")
_GUARDED = re.compile(r"\bL\['[^']*'\][\w.\[\]'\"]*")
_LIST_OF_NUMBERS = re.compile(r"[\[(]\s*-?[su]?\d+(?:\s*,\s*-?[su]?\d+)*\s*,?\s*[\])]")
_REPLACEMENTS = (
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "<address>"),
    (re.compile(r"(?<![\w<.])~?(?:/[\w.+@\-]+){2,}/?"), "<path>"),
    (re.compile(r"\btorch_dynamo_resume_in_(\w+?)_at_\d+\b"), r"\1"),
    (re.compile(r"\b\d+\.\d+\.\d+[\w.+\-]*"), "<version>"),
)
# A dtype's or a format's number is part of its name: float32 and float16 are two messages.
_WORDS_WITH_DIGITS = re.compile(
    r"\b(?!(?:b?float|int|uint|complex|bool|fp|bf|conv|pool|norm)\d+\w*\b)([A-Za-z_]\w*?)\d\w*"
)
_NUMBERS = re.compile(r"(?<![\w<#])[-+]?\d+(?:\.\d*)?(?:e[-+]?\d+)?(?![\w>])")
_SPACES = re.compile(r"\s+")
_QUOTED = re.compile(r"(['\"`])([A-Za-z_][\w.]*)\1")
_MARKS = re.compile(r"<[a-z]+>")
_KEYWORD = re.compile(r"[A-Za-z_][A-Za-z_]{2,}")
_COMMON_WORDS = """
the and for not was with that this from are but has have had its can could been being when while you your into
got failed failing error errors exception raised runtimeerror expected call call_function call_method function
method object none true false self args kwargs dynamo torch aten default running run node explanation target
fake tensor tensors internal
"""
_COMMON = frozenset(_COMMON_WORDS.split())


def normalize(message: str, names: Set[str] = frozenset()) -> str:
    """Return the message with every part that changes between runs of one bug replaced by a mark such as ``<n>``.

    Applying it twice is the same as applying it once. ``names`` are those that the script binds: quoted, one becomes
    ``<name>``.
    """
    text = _once(message, names)
    # One replacement can lay bare what another stands for: "[s0, 3]" in "tensor([s0, 3], x)" and the like.
    for _ in range(5):
        again = _once(text, names)
        if again == text:
            break
        text = again
    return text


def _once(message: str, names: Set[str]) -> str:
    text = _compiler_errors(_COLORS.sub("", message))[:LONGEST]
    tail = _TRAILING_ADVICE.search(text)
    # An exception whose whole text is such a tail keeps it: better too long than nothing to compare.
    if tail and text[: tail.start()].strip():
        text = text[: tail.start()]
    text = _DROPPED_LINES.sub("", text)
    for pattern, mark in ((_CALLS, "<tensor>"), (_OPERANDS, "<operands>")):
        text = _replace_balanced(text, pattern, mark)
    text = _GUARDED.sub("<name>", text)
    text = _LIST_OF_NUMBERS.sub("<shape>", _SIZE.sub(r"\1", text))
    for pattern, mark in _REPLACEMENTS:
        text = pattern.sub(mark, text)
    if names:
        text = _QUOTED.sub(lambda found: _masked(found, names), text)
    text = _WORDS_WITH_DIGITS.sub(r"\1#", text)
    text = _NUMBERS.sub("<n>", text)
    return _SPACES.sub(" ", text).strip()[:LONGEST].strip()


def keywords(normalized: str) -> frozenset[str]:
    """Return the words that distinguish a normalized message; marks and common words are left out."""
    words = (word.lower() for word in _KEYWORD.findall(_MARKS.sub(" ", normalized)))
    return frozenset(word for word in words if word not in _COMMON)


def common_share(left: Set[str], right: Set[str]) -> float:
    """Return the share of the smaller set of words that the other one has: 0 to 1; 0 if one of them is empty."""
    smaller = min(len(left), len(right))
    return len(left & right) / smaller if smaller else 0.0


def jaccard(left: Set[str], right: Set[str]) -> float:
    """Return the Jaccard index of two sets of words: 0 to 1; 1 for two empty ones."""
    whole = len(left | right)
    return len(left & right) / whole if whole else 1.0


def _masked(found: re.Match[str], names: Set[str]) -> str:
    quote, text = found.groups()
    return f"{quote}<name>{quote}" if set(text.split(".")) & names else found.group()


def _compiler_errors(text: str) -> str:
    """Return the first error of a C++ or Triton compiler's output; the rest quotes generated code and commands."""
    if "compile error" not in text.lower() and "CompilationError" not in text:
        return text
    lines = text.strip().splitlines()
    found = re.search(r"\berror: .*", text) or re.search(r"undefined reference.*", text)
    chosen = found.group() if found else ""
    return f"{lines[0]}\n{chosen}" if chosen and chosen not in lines[0] else lines[0]


def _replace_balanced(text: str, opening: re.Pattern[str], mark: str) -> str:
    """Replace each match of ``opening``, up to the bracket that closes it, by ``mark``."""
    parts = []
    position = 0
    while found := opening.search(text, position):
        parts.append(text[position : found.start()])
        parts.append(mark)
        position = _closing(text, found.start())
    parts.append(text[position:])
    return "".join(parts)


def _closing(text: str, start: int) -> int:
    """Return the position after the bracket that closes the first one from ``start`` on; the end if none does."""
    depth = 0
    for position in range(start, len(text)):
        if text[position] in "([{":
            depth += 1
        elif text[position] in ")]}":
            depth -= 1
            if depth <= 0:
                return position + 1
    return len(text)


# Looked for in this order: a gradient of an argument is a gradient, and an argument's attribute an argument.
_ROLES = (
    ("gradient", re.compile(r"\.grad\b|\bgradient\b|\bbackward\b")),
    ("hook", re.compile(r"\bhooks?\b")),
    ("printed", re.compile(r"\bprinted\b|\bstd(?:out|err)\b|\bwarning")),
    ("output", re.compile(r"\boutput\b|\breturn")),
    ("argument", re.compile(r"\bargument\b|\bparameter\b|\bbuffer\b|\binput\b")),
    ("object", re.compile(r"\bself\b")),
    ("global", re.compile(r"\bglobal\b|\bclosure\b|\bnonlocal\b|\battribute\b")),
)
_SEEN_AFTERWARDS = frozenset({"global", "printed"})
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?(?:e[-+]?\d+)?|\.\d+)j?", re.IGNORECASE)
_CONTAINERS = {"[": "list", "(": "tuple", "{": "dict or set", "set": "set", "deque": "deque", "frozenset": "set"}
_DIGITS = re.compile(r"\d+")


def role(place: str) -> str:
    """Return a place's role.

    That is ``output``, ``argument``, ``object``, ``gradient``, ``hook``, ``global``, ``printed`` or ``other``.
    """
    return next((name for name, pattern in _ROLES if pattern.search(place)), "other")


def same_role(left: str, right: str) -> bool:
    """Return True if two roles can belong to one bug.

    Once a script is shorter, a global may be seen in an output, and an object's attribute be an argument or a global.
    """
    if left == right:
        return True
    if "object" in (left, right):
        return {left, right} <= {"object", "argument", "global"}
    if left in _SEEN_AFTERWARDS or right in _SEEN_AFTERWARDS:
        return {left, right} <= _SEEN_AFTERWARDS | {"output"}
    return False


def attribute_class(text: str) -> str:
    """Return the attribute without the numbers of arguments and calls."""
    return _DIGITS.sub("<n>", text.strip())


def value_class(text: str) -> str:
    """Return the class of a value: ``True``, ``torch.float32``, ``number``, ``nan``, ``list``."""
    text = text.strip()
    if text in ("True", "False", "None", "returned", "a tensor") or text.startswith("torch."):
        return text if "Size" not in text else "shape"
    lowered = text.lower()
    if lowered in ("nan", "inf", "-inf"):
        return lowered
    if _NUMBER.fullmatch(text):
        return "number"
    if text[:1] in ("'", '"'):
        return "text"
    for opening, name in _CONTAINERS.items():
        if text.startswith(opening):
            return name
    return _DIGITS.sub("<n>", text)


def global_name(place: str) -> str | None:
    """Return the global variable that a place is in; ``None`` if it is in none."""
    found = re.match(r"global (\w+)", place)
    return found.group(1) if found else None


def happens_in_call(place: str) -> bool:
    """Return True for a place seen at the end of a call or of a backward, and not at the script's end."""
    return bool(re.match(r"(?:call|backward) \d+\b", place))
