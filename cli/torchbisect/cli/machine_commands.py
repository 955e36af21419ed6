"""The commands about this machine: cache and doctor. They import the client of container engines, which takes long."""

from __future__ import annotations

import datetime
from pathlib import Path

import click

from torchbisect.cli.inspect_commands import print_table
from torchbisect.containers.docker.engine import Engine
from torchbisect.containers.doctor import run_checks
from torchbisect.containers.inventory import list_cache, list_engine, prune_cache, prune_engine
from torchbisect.containers.store.cache import Cache
from torchbisect.containers.store.disk import format_bytes
from torchbisect.core.errors import Exit


def show_cache(cache_dir: Path | None, *, prune: bool, docker: bool, down_to: int | None = None) -> None:
    """Print what is kept, after removing what no run uses if ``prune`` is set, or what is beyond ``down_to`` bytes.

    Raises:
        InputError: the cache can't be used.
        MachineError: no container engine answers.
    """
    cache = Cache(cache_dir)
    engine = Engine() if docker else None
    if down_to is not None:
        Cache(cache_dir, limit=down_to).make_room(0, notify=click.echo, warn=click.echo)
    if prune:
        freed = prune_cache(cache, notify=click.echo) + (prune_engine(engine, notify=click.echo) if engine else 0)
        click.echo(f"{format_bytes(freed)} are free again")
    rows = [("what", "size", "last used", "name")]
    for thing in list_cache(cache) + (list_engine(engine) if engine else []):
        used = datetime.datetime.fromtimestamp(thing.used).strftime("%Y-%m-%d %H:%M") if thing.used else ""
        rows.append((thing.kind, format_bytes(thing.size), "now" if thing.busy else used, thing.name))
    print_table(rows)
    taken, limit = format_bytes(cache.taken()), format_bytes(cache.limit)
    click.echo(f"{taken} in {cache.root}, where items share files; a run keeps it to {limit} or its --cache-limit")
    if engine:
        engine.close()


def doctor(python: str, cache_dir: Path | None) -> int:
    """Print the checks of this machine, and return the exit code: 0 if all of them are good."""
    rows = []
    found = run_checks(python, cache=cache_dir)
    for check in found:
        rows.append(("ok" if check.ok else "!!", check.name, check.detail))
        if not check.ok and check.advice:
            rows.append(("", "", f"→ {check.advice}"))
    print_table(rows)
    return Exit.FINISHED if all(check.ok for check in found) else Exit.MACHINE
