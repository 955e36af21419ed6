"""The localise stage's last word: the pass or operator, by torch's own bisector, of a script that fails by itself."""

from __future__ import annotations

from dataclasses import asdict

from torchbisect.containers.environment import Environment
from torchbisect.core.repro import fingerprint
from torchbisect.core.version import __version__
from torchbisect.pipeline.session import Session
from torchbisect.probe.localize.backends import LADDER, Localization
from torchbisect.probe.localize.compiler_bisector import PassFound, find_pass

# Up to here there is nothing that torch's bisector could switch off.
_WITH_PARTS = LADDER[2:]


def pass_of(
    session: Session, environment: Environment, localisation: Localization, script: str, seed: int
) -> PassFound | None:
    """What torch's own bisector says of a script that fails where compiled and not where not.

    Its word is dropped where it names another backend than was measured: then it saw the script fail of something else.

    Returns:
        ``None`` where there is nothing to ask, or no answer.

    Raises:
        DiskFull: there is no room for the script.
    """
    if localisation.backend not in _WITH_PARTS:
        return None
    key = fingerprint("pass", __version__, asdict(environment.facts), environment.build.version, script, seed)
    kept = session.journal.get(key)
    if kept is None:
        session.display.status("asking torch's own compiler_bisector")
        found = find_pass(environment, script, seed=seed)
        kept = {"found": None if found is None else asdict(found)}
        session.journal.put(key, kept)
    found = None if kept["found"] is None else PassFound(**kept["found"])
    return found if found is not None and found.backend.startswith(localisation.backend) else None
