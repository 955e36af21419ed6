"""Decide if two exceptions agree: one rule for an exception that the script catches and for one that ends it."""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator

#: Classes that say who caught an exception and not what it was (torch/_dynamo/exc.py, torch/_inductor/exc.py).
WRAPPERS = frozenset(
    {
        "BackendCompilerFailed",
        "InductorError",
        "InternalTorchDynamoError",
        "LoweringException",
        "ObservedException",
        "TorchDynamoException",
        "TorchRuntimeError",
    }
)
_NAMED = re.compile(r"\b\w+(?:Error|Exception)(?=[(:])")


def is_same_exception(eager: Dict[str, Any], compiled: Dict[str, Any]) -> bool:
    """Return True if the compiled exception is the eager one, a subclass of its class, or a wrapper around it.

    Dynamo raises an exception that it meets while tracing as ``TorchRuntimeError``, whose message quotes it. The words
    of the two may differ: operators on fake tensors have their own. Both are as ``exception_to_json`` writes them.
    """
    name, short = eager["name"], short_name(eager["name"])
    links = list(_chain(compiled))
    inner = [link for link in links if short_name(link["name"]) not in WRAPPERS]
    if any(name == link["name"] or name in link["bases"] for link in inner):
        return True
    if "{}(".format(short) in compiled["message"] or "{}:".format(short) in compiled["message"]:
        return True
    # A wrapper that does not tell what it caught may have caught this.
    tells = bool(inner) or any(_NAMED.search(link["message"]) for link in links)
    return not tells and name in compiled["bases"]


def _chain(raised: Dict[str, Any]) -> Iterator[Dict[str, Any]]:
    link = raised
    while link:
        yield link
        link = link.get("cause") or {}


def short_name(name: str) -> str:
    """Return the name of a class without its module."""
    return name.rpartition(".")[2]
