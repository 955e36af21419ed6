"""Contents of the cache and of a container engine, and their removal: the ``cache`` command."""

from __future__ import annotations

from dataclasses import dataclass

import docker.errors

from torchbisect.containers.docker.engine import LABEL, Engine, engine_errors
from torchbisect.containers.leftovers import sweep, sweep_engine
from torchbisect.containers.store.cache import Cache
from torchbisect.containers.store.disk import folder_size
from torchbisect.containers.store.removal import remove_tree
from torchbisect.core.retry import Notify, silent


@dataclass(frozen=True)
class StoredItem:
    """One item that torchbisect keeps.

    Attributes:
        kind: ``environment``, ``wheels``, ``journal``, ``volume`` or ``image``.
        size: bytes; files that two items share through hard links count in both.
        used: seconds since the epoch at its last use, or ``None`` if that isn't known.
        busy: a run uses it now, so that it can't be removed.
    """

    kind: str
    name: str
    size: int
    used: float | None = None
    busy: bool = False


def list_cache(cache: Cache) -> list[StoredItem]:
    """List the items in the cache folder; the environment unused longest comes first."""
    things = [
        StoredItem("environment", kept.key, folder_size(kept.path), kept.used, _busy(cache, kept.key))
        for kept in cache.environments()
    ]
    things.append(StoredItem("wheels", str(cache.wheels), folder_size(cache.wheels)))
    things.append(StoredItem("journal", str(cache.journal), folder_size(cache.journal)))
    return things


def prune_cache(cache: Cache, *, journal: bool = False, notify: Notify = silent) -> int:
    """Remove all environments that no run uses, and the wheels that no other environment holds; return the freed bytes.

    With ``journal``, remove the earlier answers too; the same questions will be asked again.
    """
    before = cache.free()
    sweep()
    sweep_engine()
    cache.sweep()
    for kept in cache.environments():
        removed = cache.evict(kept.key)
        notify(f"removed the environment {kept.key}" if removed else f"kept the environment {kept.key}: a run uses it")
    with cache.wheels_lock(shared=False).if_free() as free:
        if not free:
            notify("kept the wheels: a run is installing")
        else:
            cache.remove_unlinked()
        if free and not cache.environments():
            remove_tree(cache.wheels)
            cache.wheels.mkdir(exist_ok=True)
    if journal:
        remove_tree(cache.journal)
        cache.journal.mkdir(exist_ok=True)
        notify("removed the journal")
    return max(cache.free() - before, 0)


def list_engine(engine: Engine) -> list[StoredItem]:
    """List torchbisect's volumes and images in an engine. Raise ``MachineError`` if the engine fails."""
    with engine_errors("listing volumes and images"):
        usage_data = engine.client.df()
    things = []
    for volume in usage_data.get("Volumes") or ():
        if LABEL in (volume.get("Labels") or {}):
            usage = volume.get("UsageData") or {}
            size = max(int(usage.get("Size", 0)), 0)
            things.append(StoredItem("volume", str(volume["Name"]), size, busy=int(usage.get("RefCount", 0)) > 0))
    for image in usage_data.get("Images") or ():
        if LABEL in (image.get("Labels") or {}):
            name = (image.get("RepoTags") or [image["Id"]])[0]
            busy = int(image.get("Containers", 0)) > 0
            things.append(StoredItem("image", str(name), int(image.get("Size", 0)), busy=busy))
    return things


def prune_engine(engine: Engine, *, notify: Notify = silent) -> int:
    """Remove torchbisect's unused volumes and images from an engine; return their size in bytes."""
    engine.sweep()
    freed = 0
    for thing in list_engine(engine):
        with engine_errors(f"removing the {thing.kind} {thing.name}"):
            try:
                if thing.kind == "volume":
                    engine.client.volumes.get(thing.name).remove()
                else:
                    engine.client.images.remove(thing.name)
            except docker.errors.APIError as error:
                if error.status_code != 409:
                    raise
                notify(f"kept the {thing.kind} {thing.name}: a container uses it")
                continue
        freed += thing.size
        notify(f"removed the {thing.kind} {thing.name}")
    return freed


def _busy(cache: Cache, key: str) -> bool:
    with cache.lease_lock(key, shared=False).if_free() as free:
        return not free
