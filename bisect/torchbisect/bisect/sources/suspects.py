"""The suspects in a range of builds: its commits, ranked with reasons, and the dependencies that changed with torch."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from torchbisect.bisect.sources.history import Commit
from torchbisect.containers.environment import Facts

_AOT = ("torch/_functorch/", "torch/_subclasses/", "torch/_higher_order_ops/", "functorch/")
_TRITON = (".ci/docker/ci_commit_pins/triton.txt", ".ci/docker/triton_version.txt")
#: The folders of each compiler stage, by a word in its names and labels. The first entry whose word is in the name of
#: the component counts, so ``compiled autograd``, which lies in dynamo's folders, comes before ``dynamo``.
STAGES: dict[str, tuple[str, ...]] = {
    "compiled autograd": (
        "torch/_dynamo/compiled_autograd.py",
        "torch/csrc/dynamo/python_compiled_autograd.cpp",
        "torch/csrc/dynamo/compiled_autograd.",
    ),
    "dynamo": ("torch/_dynamo/", "torch/csrc/dynamo/"),
    "aot": _AOT,
    "dispatcher": _AOT,
    "decomp": (
        "torch/_decomp/",
        "torch/_refs/",
        "torch/_prims/",
        "torch/_prims_common/",
        "torch/_meta_registrations.py",
    ),
    "inductor": ("torch/_inductor/", "torch/csrc/inductor/", *_TRITON),
    "triton": ("torch/_inductor/", "torch/utils/_triton.py", *_TRITON),
    "fx": ("torch/fx/",),
    "dynamic shapes": ("torch/fx/experimental/", "torch/_dynamo/", "torch/utils/_sympy/"),
}

#: All that ``torch.compile`` passes through.
_STACK = tuple(dict.fromkeys(path for paths in STAGES.values() for path in paths))
_NATIVE = ("aten/", "c10/", "torch/csrc/", "third_party/", "cmake/", "CMakeLists.txt", "caffe2/")
_TAG = re.compile(r"\[([^\]]+)\]")


@dataclass(frozen=True)
class Suspect:
    """A commit, its score (the higher, the more suspect), and the reasons for the score."""

    commit: Commit
    score: int
    reasons: tuple[str, ...]


def stage_paths(component: str | None) -> tuple[str, ...]:
    """Return the folders of a compiler stage (``inductor``, ``module: dynamo``); none for an unknown stage."""
    name = (component or "").lower().replace("_", " ")
    return next((paths for word, paths in STAGES.items() if word in name), ())


def generates_code(component: str | None) -> bool:
    """Return true for a stage whose code triton compiles, and for an unknown stage."""
    return not stage_paths(component) or any(path in _TRITON for path in stage_paths(component))


def rank_suspects(
    commits: Sequence[Commit],
    component: str | None = None,
    stack_files: Collection[str] = (),
    words: Collection[str] = (),
) -> tuple[Suspect, ...]:
    """Sort commits, the most suspect first; of equal ones the newest.

    Args:
        commits: the range.
        component: the compiler stage at fault, if localization found one.
        stack_files: the repository paths of the failing stack, such as ``torch/_inductor/scheduler.py``.
        words: words of the mismatch that a commit's subject may contain, such as the name of an operator.
    """
    reverted = {commit.reverts for commit in commits if commit.reverts} & {commit.sha for commit in commits}
    suspects = [_score(commit, component, frozenset(stack_files), words, reverted) for commit in commits]
    newest = {commit.sha: place for place, commit in enumerate(commits)}
    return tuple(sorted(suspects, key=lambda suspect: (-suspect.score, -newest[suspect.commit.sha])))


def _score(
    commit: Commit,
    component: str | None,
    stack_files: frozenset[str],
    words: Collection[str],
    reverted: Collection[str],
) -> Suspect:
    score, reasons = 0, []
    in_stack = [path for path in commit.files if path in stack_files]
    if in_stack:
        score += 8 + min(len(in_stack), 4)
        reasons.append(f"touches {_some(in_stack)}, in the failing stack")
    own = [path for path in commit.files if path.startswith(stage_paths(component))] if stage_paths(component) else []
    beside = [path for path in own if path not in stack_files]
    if own:
        score += 5
    if beside:
        reasons.append(f"touches {_some(beside)}, of {component}")
    if not own and not in_stack:
        stack = [path for path in commit.files if path.startswith(_STACK)]
        native = [path for path in commit.files if path.startswith(_NATIVE)]
        if stack:
            score += 2
            reasons.append(f"touches {_some(stack)}, which torch.compile passes through")
        elif native:
            score += 1
            reasons.append(f"touches {_some(native)}, below the compiler")
    tags = {tag.lower() for tag in _TAG.findall(commit.subject)}
    plain = (component or "").lower().removeprefix("module:").strip()
    if plain and any(plain in tag or tag in plain for tag in tags):
        score += 1
        reasons.append("its subject names the stage")
    named = [word for word in words if re.search(rf"(?<!\w){re.escape(word)}(?!\w)", commit.subject, re.IGNORECASE)]
    if named:
        score += 2
        reasons.append(f"its subject names {_some(named)}")
    if commit.sha in reverted:
        score = min(score, 1)
        reasons.append("but it was reverted within the range")
    elif commit.is_revert and reasons:
        reasons.append("reverts an earlier commit")
    return Suspect(commit, score, tuple(reasons))


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"


@dataclass(frozen=True)
class VersionChange:
    """A dependency whose version differs between two environments; ``None`` where an environment lacks it."""

    name: str
    before: str | None
    after: str | None

    def __str__(self) -> str:
        if self.before is None:
            return f"{self.name} was added ({self.after})"
        if self.after is None:
            return f"{self.name} is no longer needed (was {self.before})"
        return f"{self.name} went from {self.before} to {self.after}"


def changed_versions(before: Facts, after: Facts) -> tuple[VersionChange, ...]:
    """Return the dependencies with different versions in two environments.

    A build for the CPU has neither CUDA nor triton. Beside a build for CUDA that says nothing about the two torches.
    """
    changes = [VersionChange("Python", before.python, after.python)]
    if (before.cuda is None) == (after.cuda is None):
        changes.append(VersionChange("CUDA", before.cuda, after.cuda))
        changes.append(VersionChange("triton", before.triton, after.triton))
    return tuple(change for change in changes if change.before != change.after)
