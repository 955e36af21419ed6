"""Reading of TOML from outside; its reader is in the standard library from Python 3.11 on."""

from __future__ import annotations

import re
import sys
from typing import Any

from torchbisect.core.decode import DecodeError
from torchbisect.core.printable import one_line

if sys.version_info >= (3, 11):
    from tomllib import loads as _loads
else:
    from tomli import loads as _loads

#: The most characters of a text, and the most parts of a dotted key: the reader's time grows with their square.
_LARGEST = 1_000_000
_MOST_PARTS = 50
_PART = r"(?:[\w-]+|\"[^\"\n]*\"|'[^'\n]*')"
_LONG_KEY = re.compile(rf"(?<![\w\"'-])(?:{_PART}[ \t]*\.[ \t]*){{{_MOST_PARTS}}}")


def read_toml(text: str) -> dict[str, Any]:
    """Return the tables of a TOML text. Raises ``DecodeError`` if it is none, or exceeds a limit."""
    if len(text) > _LARGEST:
        raise DecodeError(f"it has more than {_LARGEST} characters")
    if _LONG_KEY.search(text):
        raise DecodeError(f"a key has more than {_MOST_PARTS} parts")
    try:
        return _loads(text)
    except RecursionError:
        raise DecodeError("it has too many lists and tables inside each other") from None
    except ValueError as error:
        raise DecodeError(one_line(str(error))) from None
