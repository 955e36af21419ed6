"""A search of twelve commits between two nightlies of real torch, one of which brings or repairs a bug."""

from __future__ import annotations

from typing import Any

from nightly_index import DYNAMO, DYNAMO_SCRIPT, NightlyIndex
from pytorch_clone import Clone, history_of
from running import Tool


def index_with_bug(*, fix: bool, pair: int = 0) -> NightlyIndex:
    """Return an index whose first nightly has the bug (``fix``), or whose second has it.

    Histories of another ``pair`` have other dates: a container engine keeps what it has installed of a date.
    """
    count = 2 * (pair + 1)
    return NightlyIndex(count=count, changes={DYNAMO: (0, 1) if fix else (1, count)})


def searched(tool: Tool, *words: str, fix: bool, repaired: int, pair: int = 0) -> tuple[Clone, dict[str, Any]]:
    """Search the commits between two nightlies; return the clone and the boundary in the report."""
    (tool.folder / "pytorch").mkdir()
    index = index_with_bug(fix=fix, pair=pair)
    clone = history_of(DYNAMO, index, tool.folder / "pytorch", 0, 1, fix=fix, repaired=repaired)
    index.git_versions.update(clone.nightlies)
    url = index.start()
    tool.write(DYNAMO_SCRIPT)
    older, newer = index.date(0).isoformat(), index.date(1).isoformat()
    ends = ("--torch", older, "--good", newer) if fix else ("--torch", newer, "--good", older)
    kind = "fix" if fix else "regression"
    where = ("--channel", "nightly", "--channel", "commit", "--index-url", url, "--git", str(clone.path))
    try:
        done = tool.run("bisect", *words, *ends, "--find", kind, *where, "repro.py")
    finally:
        index.stop()
    assert done.returncode == 0, done.stderr
    return clone, tool.report["bisect"][kind]
