"""The Atom feed (RFC 4287) of changes of state, for a reader that people have already."""

from __future__ import annotations

import uuid
import xml.etree.ElementTree as xml
from collections.abc import Iterable

from torchbisect.core.printable import one_line
from torchbisect.core.scrub import scrub
from torchbisect.reports.sanitize import short_line
from torchbisect.triage.ledger.store import Change

_ATOM = "http://www.w3.org/2005/Atom"
#: The changes in the feed, the newest ones.
MOST = 200
#: The time of a feed without a change.
_NEVER = "1970-01-01T00:00:00+00:00"


def feed(changes: Iterable[Change]) -> str:
    """Return the feed of changes, which come the newest first.

    An entry keeps its identity from one run to the next, so that a reader shows it once.
    """
    xml.register_namespace("", _ATOM)
    shown = list(changes)[:MOST]
    root = xml.Element(f"{{{_ATOM}}}feed")
    _add(root, "title", "Known bugs of torch.compile: changes")
    _add(root, "id", _identity("torchbisect watch"))
    _add(root, "updated", shown[0].time if shown else _NEVER)
    _add(_add(root, "author"), "name", "torchbisect")
    for one in shown:
        entry = _add(root, "entry")
        name, words = one_line(one.bug, 120), short_line(scrub(one.words), 200)
        _add(entry, "title", f"{name}: {words}")
        _add(entry, "id", _identity("change", str(one.number), one.time, one.bug, one.after))
        _add(entry, "updated", one.time)
        build = f" (torch {one.build})" if one.build else ""
        _add(entry, "summary", f"{one.before} -> {one.after}{build}")
    xml.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{xml.tostring(root, encoding="unicode")}\n'


def _add(parent: xml.Element, name: str, text: str | None = None) -> xml.Element:
    element = xml.SubElement(parent, f"{{{_ATOM}}}{name}")
    element.text = text
    return element


def _identity(*parts: str) -> str:
    text = "\n".join(parts).encode("utf-8", "backslashreplace").decode("utf-8")
    return uuid.uuid5(uuid.NAMESPACE_URL, text).urn
