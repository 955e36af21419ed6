"""Read the versions that an issue states: torch, Python, CUDA and GPU, from ``collect_env`` or from prose."""

from __future__ import annotations

import re
from dataclasses import dataclass

_VERSION = r"v?(\d+\.\d+(?:\.\d+)?(?:\.dev\d{8}|a0|rc\d+)?(?:\+[\w.]+)?)"
# The most reliable first: the output of collect_env, then of pip and conda, then prose.
_TORCH = tuple(
    re.compile(pattern, re.IGNORECASE | re.MULTILINE)
    for pattern in (
        rf"^[^\w\n]{{0,20}}PyTorch version\W{{1,6}}{_VERSION}",
        rf"^[^\w\n]{{0,20}}\[(?:pip3?|conda)\]\s+torch(?:==|\s+){_VERSION}",
        rf"\btorch\s*==\s*{_VERSION}",
        rf"torch\.__version__\W{{0,8}}(?:is|==|=|:|>)?\W{{0,4}}{_VERSION}",
        rf"^[^\w\n]{{0,20}}(?:py)?torch(?: version)?\W{{1,4}}{_VERSION}\s*$",
        rf"\b(?:py)?torch\s+(?:version\s+)?{_VERSION}",
    )
)
_NIGHTLY = re.compile(r"\bnightl(?:y|ies)\b[^\n]{0,40}?\b(20\d\d)-?(\d\d)-?(\d\d)\b", re.IGNORECASE)
_PYTHON = re.compile(r"\bPython(?: version)?\W{0,4}(3\.\d+(?:\.\d+)?)\b", re.IGNORECASE)
_CUDA_AVAILABLE = re.compile(r"^[^\w\n]{0,20}Is CUDA available\W{1,6}(True|False)", re.IGNORECASE | re.MULTILINE)
_GPU = re.compile(
    r"^[^\w\n]{0,20}GPU models and configuration\W{1,6}(?:GPU 0:\s*)?(\S[^\n]*)", re.IGNORECASE | re.MULTILINE
)


@dataclass(frozen=True)
class StatedVersions:
    """The versions that an issue states; ``None`` for each that it does not.

    Attributes:
        torch: a version in torch's own form, or the date of a nightly.
        python: the version of Python.
        cuda: the reporter's torch found a GPU.
        gpu: the GPU's name.
    """

    torch: str | None = None
    python: str | None = None
    cuda: bool | None = None
    gpu: str | None = None


def read_versions(versions: str, elsewhere: str = "") -> StatedVersions:
    """Read the versions that an issue states.

    Args:
        versions: the text under Versions, which takes precedence.
        elsewhere: the rest of the body.
    """
    return StatedVersions(
        torch=_torch(versions) or _torch(elsewhere),
        python=_first(_PYTHON, versions) or _first(_PYTHON, elsewhere),
        cuda=_cuda_available(versions) if _cuda_available(versions) is not None else _cuda_available(elsewhere),
        gpu=_gpu(versions) or _gpu(elsewhere),
    )


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.search(text)
    return found.group(1) if found else None


def _torch(text: str) -> str | None:
    for pattern in _TORCH:
        version = _first(pattern, text)
        if version:
            return version
    nightly = _NIGHTLY.search(text)
    return "-".join(nightly.groups()) if nightly else None


def _cuda_available(text: str) -> bool | None:
    word = _first(_CUDA_AVAILABLE, text)
    return None if word is None else word.lower() == "true"


def _gpu(text: str) -> str | None:
    name = _first(_GPU, text)
    return (
        None
        if name is None or name.strip().lower() in ("n/a", "no cuda", "none", "could not collect")
        else name.strip()
    )
