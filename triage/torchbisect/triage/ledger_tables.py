"""The ledger's tables in the triage database; ``Database`` makes those that an older file lacks."""

from __future__ import annotations

#: The tables by name, with their columns.
TABLES = {
    "bug": (
        "name TEXT NOT NULL PRIMARY KEY, key TEXT NOT NULL, added TEXT NOT NULL, reported TEXT NOT NULL, "
        "state TEXT NOT NULL, words TEXT NOT NULL, data TEXT NOT NULL, standing TEXT NOT NULL"
    ),
    "build": (
        "name TEXT NOT NULL PRIMARY KEY, channel TEXT NOT NULL, day TEXT NOT NULL, healthy INTEGER NOT NULL, "
        "reason TEXT NOT NULL"
    ),
    "answer": (
        "bug TEXT NOT NULL, build TEXT NOT NULL, key TEXT NOT NULL, day TEXT NOT NULL, seen TEXT NOT NULL, "
        "healthy INTEGER NOT NULL, control TEXT NOT NULL, reason TEXT NOT NULL, control_reason TEXT NOT NULL, "
        "seconds REAL NOT NULL, counted INTEGER NOT NULL, PRIMARY KEY (bug, build, key)"
    ),
    "change": (
        "id INTEGER PRIMARY KEY AUTOINCREMENT, run INTEGER NOT NULL, time TEXT NOT NULL, bug TEXT NOT NULL, "
        "build TEXT NOT NULL, before TEXT NOT NULL, after TEXT NOT NULL, words TEXT NOT NULL, "
        "commented INTEGER NOT NULL DEFAULT 0"
    ),
    "run": (
        "id INTEGER PRIMARY KEY AUTOINCREMENT, started TEXT NOT NULL, finished TEXT NOT NULL DEFAULT '', "
        "asked INTEGER NOT NULL DEFAULT 0, seconds REAL NOT NULL DEFAULT 0"
    ),
}
