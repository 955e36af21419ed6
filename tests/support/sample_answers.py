"""Samples of what agents and environments say, as JSON values."""

from __future__ import annotations

from typing import Any

RAISED: dict[str, Any] = {
    "name": "torch._dynamo.exc.Unsupported", "bases": ["RuntimeError"], "message": "call_function x\nfrom user code:\n",
    "frames": [{"file": "/x/site-packages/torch/a.py", "function": "f", "line": 3, "where": "torch"}], "cause": None,
}  # fmt: skip
FINISHED = {"how": "finished", "compiled": 1, "call_seconds": [0.5], "recompiles": ["x"], "seconds": 1.0}
DIFFERENCE = {
    "kind": "metadata", "place": "call 0 output[1]", "attribute": "requires_grad", "eager": "True", "compiled": "False",
    "detail": {"index": [0], "error": 1.5, "bound": "nan", "numel": 3},
}  # fmt: skip
OBSERVATIONS = [
    {"eager": FINISHED, "compiled": FINISHED, "differences": [DIFFERENCE], "notes": ["x"], "drawn": True},
    {"eager": FINISHED, "compiled": {**FINISHED, "how": "raised", "raised": RAISED}},
    {"eager": {**FINISHED, "how": "raised", "raised": {**RAISED, "cause": RAISED}}, "compiled": FINISHED},
]
ANSWERS = [{"id": 1, "answer": one, "begun": None, "seconds": 0.0} for one in OBSERVATIONS]
TRACE = {
    "lines": [1, 2], "calls": [{"number": 0, "function": "f", "line": 3}],
    "values": [{"line": 1, "function": "f", "name": "x", "text": "3", "exact": True}],
}  # fmt: skip
FACTS = {"torch": "2.8.0+cpu", "git_version": "abc", "python": "3.11.7", "platform": "Linux", "cuda": None}
GPU = {"built": "12.6", "available": True, "capability": [9, 0], "architectures": ["sm_80"], "sum": 4.0}
PYTHON = {
    "version": [3, 11, 7], "implementation": "cpython", "platform": "linux-x86_64", "libc": "glibc 2.36", "mac": "",
    "free_threaded": False, "debug": False, "base": "/usr/bin/python3", "user_base": None, "torch": "2.8.0",
}  # fmt: skip
