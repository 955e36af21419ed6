"""Measure the cost of compiling in one run: seconds, graphs, recompiles and graph breaks with their reasons.

Every figure comes from a counter of the torch under test. These counters were moved and renamed between releases, so
each is read with a fallback, and a missing counter counts as zero.
"""

from __future__ import annotations

import contextlib
from typing import Any, Dict, List

import torch
import torch._dynamo
import torch._dynamo.utils

MAX_REASONS = 50
MAX_REASON_LENGTH = 300


def reset() -> None:
    """Clear the counters, which hold what the agent itself compiled before the fork."""
    utils: Any = torch._dynamo.utils
    with contextlib.suppress(AttributeError):
        utils.counters.clear()
    for name in ("_compilation_metrics", "compilation_time_metrics", "guard_failures"):
        held: Any = getattr(utils, name, None)
        if hasattr(held, "clear"):
            held.clear()
    with contextlib.suppress(Exception):
        utils.set_compilation_metrics_limit(1000)


def collect() -> Dict[str, Any]:
    """Return the figures in the form that ``observation.Ending`` reads."""
    compiles = _compiles()
    return {
        "graphs": int(_counter("stats").get("unique_graphs", 0)),
        "compile_seconds": round(_seconds(compiles), 4),
        "recompiles": _recompiles(compiles)[:MAX_REASONS],
        "graph_breaks": _graph_breaks()[:MAX_REASONS],
    }


def counts() -> Dict[str, int]:
    """Return the numbers of recompiles and graph breaks, however many there are."""
    return {"recompiles": len(_recompiles(_compiles())), "graph-breaks": len(_graph_breaks())}


def _compiles() -> List[Any]:
    """Return one record for each frame that dynamo compiled; empty before torch 2.1."""
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
    """Return the reason for each recompile, which is a compile of a frame that already had a cache entry."""
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
    counted = _counter("graph_break").items()
    return [_first_line(reason) for reason, count in counted for _ in range(int(count))]


def _counter(name: str) -> Dict[str, Any]:
    return dict((getattr(torch._dynamo.utils, "counters", None) or {}).get(name, {}))


def _first_line(reason: Any) -> str:
    return (str(reason).strip().splitlines() or [""])[0][:MAX_REASON_LENGTH]
