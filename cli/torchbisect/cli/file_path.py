"""Paths on the command line: an empty one is refused, since ``Path("")`` would be the working directory."""

from __future__ import annotations

from typing import Any

import click


class FilePath(click.Path):
    """A path that is not empty."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and not value.strip():
            self.fail("the path is empty, perhaps for a variable of the shell that is not set; write one", param, ctx)
        return super().convert(value, param, ctx)
