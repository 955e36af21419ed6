"""The ways in from a program: ``check``, ``check_module``, ``minimize``, ``bisect``, and the pytest plugin.

    from torchbisect.api import check
    report = check(function, *args, **kwargs)

Importing it imports no torch.
"""

from __future__ import annotations

from torchbisect.api.check_options import CheckOptions
from torchbisect.api.functions import bisect, check, check_module, minimize

__all__ = ["CheckOptions", "bisect", "check", "check_module", "minimize"]
