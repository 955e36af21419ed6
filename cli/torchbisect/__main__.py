"""The entry of ``python -m torchbisect``."""

from __future__ import annotations

from torchbisect.cli.main import main

if __name__ == "__main__":
    main()
