"""A script that corrupts memory which only a plain process frees."""

from __future__ import annotations

#: Compiled code that leaves memory broken, in a way that is met when the process frees it at its end: a forked process
#: of the agent never does.
CORRUPTED = """\
import ctypes
import torch
libc = ctypes.CDLL(None)
libc.calloc.restype = ctypes.c_void_p
def corrupting(graph, inputs):
    libc.__cxa_atexit(libc.free, ctypes.c_void_p(libc.calloc(1, 4096) + 64), None)
    return graph
torch.compile(lambda x: x + 1, backend={backend})(torch.ones(2))
print("done")
"""
