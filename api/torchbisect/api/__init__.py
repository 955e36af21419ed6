"""The ways in from a program: ``check`` and its like, ``capture``, and the pytest plugin.

    from torchbisect.api import check
    report = check(function, *args, **kwargs)

Importing it imports no torch.
"""

from __future__ import annotations

from torchbisect.api.capture.capturing import capture, watch_compile
from torchbisect.api.check_options import CheckOptions
from torchbisect.api.functions import bisect, check, check_module, minimize

__all__ = ["CheckOptions", "bisect", "capture", "check", "check_module", "minimize", "watch_compile"]
