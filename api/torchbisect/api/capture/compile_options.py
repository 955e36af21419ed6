"""Read the options of ``torch.compile`` from what it returned."""

from __future__ import annotations

from typing import Any

# Torch up to 2.8 has the second name.
_WRAPPED = ("_torchdynamo_orig_backend", "_torchdynamo_orig_callable")
_MOST_WRAPPERS = 8


def compile_options(compiled: Any) -> dict[str, Any]:
    """Return the options of a compiled callable, as far as it knows them.

    They are its backend, dynamic shapes, and inductor's options, among which is what a mode sets.
    """
    context = _context(compiled)
    found: dict[str, Any] = {}
    dynamic = getattr(context, "_dynamic", None)
    if dynamic is not None:
        found["dynamic"] = dynamic
    backend = getattr(context, "callback", None)
    for _ in range(_MOST_WRAPPERS):
        name = getattr(backend, "compiler_name", None)
        if isinstance(name, str):
            if name != "inductor":
                return {"backend": name, **found}
            config = getattr(backend, "config", None)
            return {**found, "options": dict(config)} if config else found
        backend = next((getattr(backend, name) for name in _WRAPPED if hasattr(backend, name)), None)
    return found


def _context(compiled: Any) -> Any:
    """Return dynamo's context: a compiled module has it as an attribute, a compiled function in its closure."""
    context = getattr(compiled, "dynamo_ctx", None)
    if context is not None:
        return context
    for cell in getattr(compiled, "__closure__", None) or ():
        try:
            value = cell.cell_contents
        except ValueError:  # an empty cell
            continue
        if hasattr(value, "callback") and hasattr(value, "_dynamic"):
            return value
    return None
