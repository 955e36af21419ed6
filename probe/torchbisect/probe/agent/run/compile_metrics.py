"""What compiling cost in one run: seconds, recompiles with their reasons, graph breaks with theirs.

Every figure comes from a counter of the torch under test. They moved and were renamed from release to release, so each
is asked for with care, and one that isn't there counts as nothing.
"""

from __future__ import annotations

import contextlib
from typing import Any, Dict, List

import torch
import torch._dynamo
import torch._dynamo.utils

MOST_REASONS = 50
LONGEST = 300


def forget() -> None:
    """Drop what the agent itself has counted before the fork."""
    utils: Any = torch._dynamo.utils
    with contextlib.suppress(AttributeError):
        utils.counters.clear()
    for name in ("_compilation_metrics", "compilation_time_metrics", "guard_failures"):
        held: Any = getattr(utils, name, None)
        if hasattr(held, "clear"):
            held.clear()
    with contextlib.suppress(Exception):
        utils.set_compilation_metrics_limit(1000)


def graphs() -> int:
    """How many graphs a backend was handed."""
    try:
        return int(torch._dynamo.utils.counters["stats"]["unique_graphs"])
    except (AttributeError, KeyError, TypeError):
        return 0


def figures() -> Dict[str, Any]:
    """The figures as ``observation.Ending`` reads them."""
    compiles = _compiles()
    return {
        "graphs": graphs(),
        "compile_seconds": round(_seconds(compiles), 4),
        "recompiles": _recompiles(compiles)[:MOST_REASONS],
        "graph_breaks": _graph_breaks()[:MOST_REASONS],
    }


def _compiles() -> List[Any]:
    """One record for each frame that dynamo compiled; since 2.1."""
    utils: Any = torch._dynamo.utils
    try:
        return list(utils.get_compilation_metrics())
    except Exception:
        return list(getattr(utils, "_compilation_metrics", ()) or ())


def _seconds(compiles: List[Any]) -> float:
    spent = [getattr(item, "entire_frame_compile_time_s", None) or 0.0 for item in compiles]
    if compiles:
        return float(sum(spent))
    phases = getattr(torch._dynamo.utils, "compilation_time_metrics", None) or {}
    for name in ("_compile.<locals>.compile_inner", "_compile"):
        if name in phases:
            return float(sum(phases[name]))
    return 0.0


def _recompiles(compiles: List[Any]) -> List[str]:
    """Why frames were compiled again: a frame that already had an entry in its cache."""
    found = []
    for item in compiles:
        if getattr(item, "cache_size", None) and getattr(item, "is_forward", True) is not False:
            reason = getattr(item, "recompile_reason", None) or getattr(item, "co_name", None) or "no reason given"
            found.append(_first_line(reason))
    if not compiles:
        failures = getattr(torch._dynamo.utils, "guard_failures", None) or {}
        found = [_first_line(reason) for reasons in failures.values() for reason in reasons]
    return found


def _graph_breaks() -> List[str]:
    try:
        counted = dict(torch._dynamo.utils.counters["graph_break"])
    except (AttributeError, KeyError, TypeError):
        return []
    return [_first_line(reason) for reason, count in counted.items() for _ in range(int(count))]


def _first_line(reason: Any) -> str:
    lines = str(reason).strip().splitlines() or [""]
    return lines[0][:LONGEST]
