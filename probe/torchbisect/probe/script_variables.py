"""The environment variables that a script sets for torch before it imports it.

Torch reads most of its variables when it is imported, which an agent has done before it runs a script. So the agent of
such a script is started with the variables that the script's first statements set.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from torchbisect.core.python_text import parse_or_none

_NAME = re.compile(r"(?:TORCH|PYTORCH|INDUCTOR|TRITON|AOT)[A-Z0-9_]{0,60}")
# Variables of torch's libraries. Others of them load a library or a tool.
_OF_LIBRARIES = """
ATEN_CPU_CAPABILITY CUBLAS_WORKSPACE_CONFIG CUBLASLT_WORKSPACE_SIZE CUDA_DEVICE_ORDER CUDA_LAUNCH_BLOCKING
CUDA_VISIBLE_DEVICES HIP_VISIBLE_DEVICES MKL_NUM_THREADS NVIDIA_TF32_OVERRIDE OMP_NUM_THREADS ROCR_VISIBLE_DEVICES
"""
_VALUE = re.compile(r"[\w.,:+-]{0,80}")
# A folder or program of the reporter's machine, its card, and what the tool sets itself.
_REFUSED_ENDS = ("_DIR", "_DIRS", "_PATH", "_PATHS", "_HOME", "_FILE", "_OUT", "_ROOT", "_PREFIX", "_COMMAND", "_CMD")
_REFUSED = """
TORCHDYNAMO_DISABLE TORCH_COMPILE_DISABLE TORCHINDUCTOR_COMPILE_THREADS TORCHDYNAMO_REPRO_AFTER TORCHDYNAMO_REPRO_LEVEL
TORCH_EXTENSIONS TORCH_TRACE PYTORCH_NVML_BASED_CUDA_CHECK TORCHINDUCTOR_REMOTE_CACHE TORCHINDUCTOR_WORKER_START
TORCH_DEVICE_BACKEND_AUTOLOAD TORCH_CUDA_ARCH_LIST
"""
_FOR_LOGS = """
TORCH_LOGS TORCH_LOGS_FORMAT TORCHDYNAMO_VERBOSE TORCH_COMPILE_DEBUG TORCH_SHOW_CPP_STACKTRACES TORCH_CPP_LOG_LEVEL
TORCHDYNAMO_PRINT_GUARD_FAILS TORCHDYNAMO_EXTENDED_DEBUG_CPP TORCH_DISTRIBUTED_DEBUG CUDA_LAUNCH_BLOCKING
TORCH_USE_CUDA_DSA TORCHINDUCTOR_TRACE INDUCTOR_POST_FUSION_SVG INDUCTOR_ORIG_FX_SVG INDUCTOR_WRITE_SCHEDULER_GRAPH
TORCHDYNAMO_LOG_LEVEL TRITON_DEBUG TRITON_PRINT_AUTOTUNING TRITON_KERNEL_DUMP
"""


def is_for_logs(name: str) -> bool:
    """Return true for a variable that only changes what torch logs or keeps for debugging."""
    return name in _FOR_LOGS.split()


def is_allowed(name: str, value: str) -> bool:
    """Return true for a variable that only torch and its libraries read, with a value that names no file."""
    return (
        (_NAME.fullmatch(name) is not None or name in _OF_LIBRARIES.split())
        and _VALUE.fullmatch(value) is not None
        and not name.endswith(_REFUSED_ENDS)
        and name not in _REFUSED.split()
    )


def variables_of(source: str) -> Mapping[str, str]:
    """Return the allowed variables that a script's statements set before the first import of torch."""
    if "environ" not in source:
        return {}
    tree = parse_or_none(source)
    if tree is None:
        return {}
    found: dict[str, str] = {}
    for statement in tree.body:
        if imports_torch(statement):
            break
        usable = ((name, value) for name, value in _settings(statement) if is_allowed(name, value))
        found.update({name: value for name, value in usable if not is_for_logs(name)})
    return found


def imports_torch(statement: ast.stmt) -> bool:
    """Return true for an import of torch or of something in it."""
    if isinstance(statement, ast.Import):
        return any(alias.name.split(".")[0] == "torch" for alias in statement.names)
    return isinstance(statement, ast.ImportFrom) and (statement.module or "").split(".")[0] == "torch"


def _settings(statement: ast.stmt) -> Iterator[tuple[str, str]]:
    """Yield what a statement sets by ``os.environ["NAME"] = "value"`` or ``os.environ.setdefault``."""
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
        for target in statement.targets:
            if isinstance(target, ast.Subscript) and _is_environ(target.value):
                yield from _pair(target.slice, statement.value)
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        if isinstance(call.func, ast.Attribute) and call.func.attr == "setdefault" and _is_environ(call.func.value):
            yield from _pair(*call.args) if len(call.args) == 2 else ()


def _pair(name: ast.expr, value: ast.expr) -> Iterator[tuple[str, str]]:
    texts = [item.value for item in (name, value) if isinstance(item, ast.Constant) and isinstance(item.value, str)]
    if len(texts) == 2:
        yield texts[0], texts[1]


def _is_environ(node: ast.expr) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "environ") or (
        isinstance(node, ast.Name) and node.id == "environ"
    )
