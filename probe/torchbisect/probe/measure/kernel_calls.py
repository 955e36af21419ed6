"""The kernels that inductor's generated code calls."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest

_FUNCTION = re.compile(r"^( *)def call\(.*\n((?:\1 +.*\n|\s*\n)*)", re.MULTILINE)
_KERNEL = r"(?:cpp|triton|extern_kernels)[\w.]*?|torch\.ops\.[\w.]+?"
_CALL = re.compile(rf"^\s+(?:[\w, ]+ = )?({_KERNEL})(?:\.run)?\(", re.MULTILINE)


def kernel_calls(code: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the kernels that generated code calls, in their order.

    >>> kernel_calls(["def call(args):\\n    cpp_fused_add_0(x)\\n    extern_kernels.mm(a, b, out=c)\\n"])
    ('cpp_fused_add_0', 'extern_kernels.mm')
    """
    bodies = [body for text in code for _, body in _FUNCTION.findall(text)]
    return tuple(name for body in bodies for name in _CALL.findall(body))


def aligned(left: Sequence[str], right: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the rows of a table of two lists, in which equal names stand in one row.

    >>> list(aligned(["a", "b"], ["b", "c"]))
    [('a', ''), ('b', 'b'), ('', 'c')]
    """
    for _, start, end, begin, stop in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        yield from zip_longest(left[start:end], right[begin:stop], fillvalue="")
