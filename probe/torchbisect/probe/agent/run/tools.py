"""Run torch's ``compiler_bisector`` and ``collect_env`` in a forked child, where torch is imported already."""

from __future__ import annotations

import contextlib
import runpy
import sys
from typing import Any, Callable, Dict

import torch
import torch._dynamo


def find_pass(path: str, seed: int) -> Dict[str, Any]:
    """Ask torch's ``CompilerBisector`` which pass makes a script fail; ``{}`` if this torch has none, or no answer.

    It keeps its state in the cache folder, and needs every graph to be compiled anew. The C++ that comes of it may be
    the same each time, and is compiled once: ``force_disable_caches`` would compile that anew too.
    """
    try:
        from torch._inductor.compiler_bisector import CompilerBisector
    except ImportError:
        return {}
    import torch._functorch.config as functorch
    import torch._inductor.config as inductor

    # A compile takes a graph, or which sizes are dynamic, from one before it; older builds lack some of this.
    for config, flag in (
        (inductor, "fx_graph_cache"),
        (functorch, "enable_autograd_cache"),
        (torch._dynamo.config, "automatic_dynamic_local_pgo"),
    ):
        if hasattr(config, flag):
            setattr(config, flag, False)

    def passes() -> bool:
        torch._dynamo.reset()
        torch.manual_seed(seed)
        try:
            runpy.run_path(path, run_name="__main__")
        except SystemExit as ended:
            return not ended.code
        except Exception:
            return False
        return True

    with contextlib.redirect_stdout(sys.stderr):
        found = CompilerBisector.do_bisect(passes)
    if found is None:
        return {}
    detail = getattr(found, "debug_info", None)
    return {
        "backend": found.backend,
        "subsystem": found.subsystem,
        "bisect_number": found.bisect_number,
        "debug_info": None if detail is None else str(detail),
    }


def collect_env(path: str, seed: int) -> Dict[str, Any]:
    """Return the output of ``python -m torch.utils.collect_env``."""
    from torch.utils.collect_env import get_pretty_env_info

    return {"text": get_pretty_env_info()}


TOOLS: Dict[str, Callable[[str, int], Dict[str, Any]]] = {"find-pass": find_pass, "collect-env": collect_env}
"""The tools by the role of the child that runs them. Each gets the path of the script and its seed."""
