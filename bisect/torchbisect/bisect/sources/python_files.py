"""The files of PyTorch that can be replaced in an installation without a build, and the files that need one.

dynamo, AOTAutograd, the decompositions, inductor and fx are Python. An installation of one build with the Python files
of another commit shows whether that commit's Python has the bug.
"""

from __future__ import annotations

from collections.abc import Sequence

from torchbisect.bisect.sources.history import Commit, History

#: The packages of a torch wheel that have the same paths in the repository.
_PACKAGES = ("torch/", "torchgen/", "functorch/")
#: Files that are read at run time: Python, inductor's templates, dynamo's tables.
_SUFFIXES = (".py", ".jinja", ".json")
#: Inductor's own C++, such as ``cpp_prefix.h``, is compiled anew for each graph.
_COMPILED_AT_RUN_TIME, _SOURCES = (
    "torch/_inductor/",
    (".cpp", ".h", ".cc", ".c", ".cu", ".cuh", ".hpp", ".mm", ".metal"),
)
#: Files that the build makes, or that no wheel has.
_NOT_REPLACED = ("torch/version.py", "torch/testing/_internal/generated/", "torch/csrc/", "torch/lib/")

_NATIVE_SUFFIXES = (*_SOURCES, ".yaml", ".cmake", "CMakeLists.txt")
#: The formulas of derivatives, and the programs that write C++ from them.
_GENERATORS = "tools/autograd/"
_NATIVE = ("torch/csrc/", "aten/", "c10/", "third_party/", "cmake/", "CMakeLists.txt", "torch/lib/", "caffe2/")


def is_replaceable(path: str) -> bool:
    """Return true if an installation has this file of the repository and can take another version without a build."""
    inside = ".." not in path.split("/")  # a wheel names its files as it likes
    read = path.endswith(_SUFFIXES) or (path.startswith(_COMPILED_AT_RUN_TIME) and path.endswith(_SOURCES))
    return inside and read and path.startswith(_PACKAGES) and not path.startswith(_NOT_REPLACED)


def is_native(path: str) -> bool:
    """Return true if a change of this file shows only after a build."""
    if path.startswith(_GENERATORS) or (path.startswith(_NATIVE) and path.endswith(_NATIVE_SUFFIXES)):
        return True
    return path.startswith("torch/") and path.endswith(_SOURCES) and not is_replaceable(path)


def changed_python(history: History, base: str, commit: str) -> dict[str, bytes | None]:
    """Return what turns the Python of ``base`` into that of ``commit``: contents by path, ``None`` for a removed file.

    Raise ``InputError`` if the clone can't give a file's contents.
    """
    history.prefetch_changes(base, commit)
    return {
        path: history.read(commit, path) if there else None
        for path, there in history.changed(base, commit).items()
        if is_replaceable(path)
    }


def native_changes(commits: Sequence[Commit]) -> tuple[Commit, ...]:
    """Return the commits that need a build: the suspects if the cause is not in the Python files."""
    return tuple(commit for commit in commits if any(is_native(path) for path in commit.files))


def python_changes(commits: Sequence[Commit]) -> tuple[Commit, ...]:
    """Return the commits that change a replaceable file."""
    return tuple(commit for commit in commits if any(is_replaceable(path) for path in commit.files))
