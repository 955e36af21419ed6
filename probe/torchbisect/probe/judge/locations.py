"""Reduce the place and the values of a difference to what two scripts of one bug share.

A shrunk script makes fewer calls, returns other structures and has other names. All that stays of
``call 3 output['loss']`` is that it was an output.
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
    """Return a place's role: ``output``, ``argument``, ``gradient``, ``hook``, ``global``, ``printed``, ``other``."""
    return next((name for name, pattern in _ROLES if pattern.search(place)), "other")


def same_role(left: str, right: str) -> bool:
    """Return True if two roles can belong to one bug.

    A difference in a global or in printed text may be seen in an output once the script is shorter, and vice versa.
    """
    if left == right:
        return True
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
