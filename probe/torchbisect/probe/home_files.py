"""What a script finds in the user's home: the files that it names there, and the caches of libraries that it uses.

A run has a home of its own, so that nothing of the user is changed. Files that the script names are copied into it.
Caches of models are too large for that. In a venv the libraries get the user's own, as under ``python``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

_MENTIONS = re.compile(r"expanduser|\bhome\(|[\"']HOME[\"']|[\"']~")
_CACHES = (
    (
        re.compile(
            r"\b(?:transformers|huggingface_hub|diffusers|datasets|sentence_transformers|timm|peft|open_clip|tokenizers)\b"
        ),
        "HF_HOME",
        ".cache/huggingface",
        (
            "HF_HOME",
            "HF_HUB_CACHE",
            "HF_DATASETS_CACHE",
            "HF_HUB_OFFLINE",
            "TRANSFORMERS_CACHE",
            "TRANSFORMERS_OFFLINE",
        ),
    ),
    (
        re.compile(r"\b(?:torchvision|torchaudio|timm)\b|\bhub\s*\.\s*load|\bload_state_dict_from_url\b"),
        "TORCH_HOME",
        ".cache/torch",
        ("TORCH_HOME",),
    ),
)


_NAMES_USER = re.compile(r"\bgetuser\(|[\"'](?:USER|LOGNAME)[\"']|\$\{?(?:USER|LOGNAME)\b")


def mentions_home(texts: Sequence[str]) -> bool:
    """Return True if a script may look for files in the user's home."""
    return any(_MENTIONS.search(text) for text in texts)


def named_in_home(home: Path, names: frozenset[str], cwd: Path) -> tuple[list[Path], list[Path]]:
    """Return the folders of the home that lead to what a script names, and the files and folders that it names.

    A folder is taken whole only if nothing in it is named: ``~/.cache/acme`` does not take the whole ``.cache``.
    """
    folders: list[Path] = []
    named: list[Path] = []
    pending = [home]
    while pending and len(folders) < 200:
        folder = pending.pop()
        inside = _named(folder, names)
        if folder != home:
            (folders if inside or folder in cwd.parents else named).append(folder)
        for path in inside:
            if path.is_dir() and not path.is_symlink():
                pending.append(path)
            else:
                named.append(path)
    return folders, named


def _named(folder: Path, names: frozenset[str]) -> list[Path]:
    try:
        return [folder / name for name in sorted(os.listdir(folder)) if name in names]
    except OSError:
        return []


def library_caches(texts: Sequence[str], shell: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the variables that lead the libraries of a script to the user's caches of models."""
    found: dict[str, str] = {}
    for uses, name, place, names in _CACHES:
        if not any(uses.search(text) for text in texts):
            continue
        found.update({name: shell[name] for name in names if name in shell})
        usual = Path(shell.get("XDG_CACHE_HOME") or Path(shell.get("HOME", "/")) / ".cache", Path(place).name)
        if not found.keys() & set(names) and usual.is_dir():
            found[name] = str(usual)
    return tuple(found.items())


def user_name(texts: Sequence[str], shell: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the variables with the user's name, where a script asks for it: folders on shared machines have it."""
    if not any(_NAMES_USER.search(text) for text in texts):
        return ()
    return tuple((name, shell[name]) for name in ("LOGNAME", "USER") if name in shell)
