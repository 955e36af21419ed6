"""The words in which a difference says where it is and what it saw, reduced to what two scripts of one bug share.

A shrunk script makes one call instead of twelve, returns a tensor instead of a dictionary of tensors and has other
names; what is left of ``call 3 output['loss']`` is that it was an output.
"""

from __future__ import annotations

import re

# Looked for in this order: a gradient of an argument is a gradient, and an argument's attribute an argument.
_ROLES = (
    ("gradient", re.compile(r"\.grad\b|\bgradient\b|\bbackward\b")),
    ("hook", re.compile(r"\bhooks?\b")),
    ("printed", re.compile(r"\bprinted\b|\bstd(?:out|err)\b|\bwarning")),
    ("output", re.compile(r"\boutput\b|\breturn")),
    ("argument", re.compile(r"\bargument\b|\bself\b|\bparameter\b|\bbuffer\b|\binput\b")),
    ("global", re.compile(r"\bglobal\b|\bclosure\b|\bnonlocal\b|\battribute\b")),
)
_SEEN_AFTERWARDS = frozenset({"global", "printed"})
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\d*\.\d+)j?", re.IGNORECASE)
_CONTAINERS = {"[": "list", "(": "tuple", "{": "dict or set", "set": "set", "deque": "deque", "frozenset": "set"}
_DIGITS = re.compile(r"\d+")


def role(place: str) -> str:
    """What part a place plays: ``output``, ``argument``, ``gradient``, ``hook``, ``global``, ``printed``, ``other``."""
    return next((name for name, pattern in _ROLES if pattern.search(place)), "other")


def compatible(left: str, right: str) -> bool:
    """Whether two roles can be those of one bug.

    What is seen after the calls, in a global or in print, may be seen in an output once the script is shorter, and
    the other way round.
    """
    if left == right:
        return True
    if left in _SEEN_AFTERWARDS or right in _SEEN_AFTERWARDS:
        return {left, right} <= _SEEN_AFTERWARDS | {"output"}
    return False


def attribute(text: str) -> str:
    """The attribute without the numbers of arguments and calls."""
    return _DIGITS.sub("<n>", text.strip())


def side(text: str) -> str:
    """One side of a difference as a class of values: ``True``, ``torch.float32``, ``number``, ``nan``, ``list``."""
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
    """The global of the script that a place is in; ``None`` for a place that is in none."""
    found = re.match(r"global (\w+)", place)
    return found.group(1) if found else None


def happens_in_call(place: str) -> bool:
    """Whether it was seen as a call ended or as the autograd engine ran, and not at the script's end."""
    return bool(re.match(r"(?:call|backward) \d+\b", place))
