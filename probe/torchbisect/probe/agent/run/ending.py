"""Determine how a run ended, from the last entries of its tape and from the exit status of its process."""

from __future__ import annotations

import os
import signal
from typing import Any, Dict, List, Optional, Tuple

from ..capture.tape import Entry


def ending_of(entries: List[Entry], status: Optional[int], limit: Optional[str]) -> Tuple[Dict[str, Any], List[str]]:
    """Return the ending of a run, as ``observation.Ending`` in JSON, and notes for the reader.

    Args:
        entries: the entries of its tape.
        status: its wait status; ``None`` if it was killed before it ended.
        limit: the limit that it exceeded, if it did: ``timed-out``, ``memory`` or ``processes``.
    """
    last = next((entry.facts for entry in reversed(entries) if entry.facts.get("e") == "end"), None)
    broken = next((entry.facts for entry in entries if entry.facts.get("e") == "broken"), None)
    labels = {entry.facts.get("label") for entry in entries if entry.facts.get("e") == "begin"}
    recorded: Dict[str, Any] = dict(last["ending"]) if last else {"compiled": len(labels)} if labels else {}
    notes = list(recorded.pop("notes", ()))
    if limit == "timed-out":
        return {**recorded, "how": "timed-out", "raised": None}, notes
    if limit is not None:
        notes.append("the run was ended because it exceeded the limit on {}".format(limit))
        return {**recorded, "how": "out-of-memory" if limit == "memory" else "lost", "raised": None}, notes
    if status is not None and os.WIFSIGNALED(status):
        return {**recorded, "how": "signalled", "signal": _signal_name(os.WTERMSIG(status)), "raised": None}, notes
    code = os.WEXITSTATUS(status) if status is not None else None
    if broken is not None and not last:
        raised = broken["raised"]
        notes.append("the agent failed during the run: {}: {}".format(raised["name"], raised["message"]))
        return {"how": "lost"}, notes
    if last and (code == 0 or recorded.get("how") == "exited"):
        return recorded, notes
    if code is not None:
        # C code called ``_exit``, or an exit handler called ``os._exit`` after the script's end.
        return {**recorded, "how": "exited", "status": code, "raised": None}, notes
    return {**recorded, "how": "lost"}, notes


def _signal_name(number: int) -> str:
    return signal.Signals(number).name if number < 32 else str(number)
