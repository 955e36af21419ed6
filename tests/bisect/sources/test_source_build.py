"""Commits of a git repository, built by a shell command into a virtual environment."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pytorch_clone import Clone

from torchbisect.bisect.search.evidence import BuildAnswer, BuildStatus
from torchbisect.bisect.sources.commit_search import CommitRange
from torchbisect.bisect.sources.history import Commit, History
from torchbisect.bisect.sources.source_build import CommitBuilder, find_culprit_by_building
from torchbisect.containers.environment import Facts, Venv
from torchbisect.containers.store.cache import Cache
from torchbisect.core.build import Build
from torchbisect.core.errors import InstallFailed, MachineError

pytestmark = pytest.mark.slow

#: Installs the file ``state`` of the work tree as torch; skips or fails for some commits.
COMMAND = """
case $(cat state) in skip) exit 125 ;; broken) echo "no such header" >&2; exit 2 ;; esac
site=$(python -c 'import site; print(site.getsitepackages()[0])')
echo built >> log
printf "__version__ = '2.15.0a0'\\nANSWER = '%s'\\nclass version:\\n    git_version = '%s'\\n    cuda = None\\n" \
    "$(cat state)" "$TORCHBISECT_COMMIT" > "$site/torch.py"
"""


@pytest.fixture
def span(tmp_path: Path) -> tuple[History, CommitRange]:
    (tmp_path / "clone").mkdir()
    clone = Clone(tmp_path / "clone")
    clone.git("init", "-q", "-b", "main")
    shas = [
        clone.commit(f"{number} ({state})", {"state": state})
        for number, state in enumerate(("good", "good ", "skip", "good  ", "broken", "bad", "bad "))
    ]
    history = History.open(str(clone.path), tmp_path)
    return history, CommitRange(history.commit(shas[0]), history.between(shas[0], shas[-1]))


def builder(history: History, tmp_path: Path, command: str) -> CommitBuilder:
    (tmp_path / "homes").mkdir(exist_ok=True)
    like = Venv(Build("2.14.0"), Facts("2.14.0", None, "3", "x"), Path(sys.executable), tmp_path / "homes")
    return CommitBuilder(history, command, Cache(tmp_path / "cache"), like, print)


def test_commits_that_cannot_be_built_give_a_range(tmp_path: Path, span: tuple[History, CommitRange]) -> None:
    history, commits = span
    made = builder(history, tmp_path, COMMAND)

    def ask(commit: Commit) -> BuildAnswer:
        try:
            with made.built(commit) as environment:
                assert environment.facts.git_version == commit.sha
                said = environment.run(["-c", "import torch; print(torch.ANSWER)"], timeout=60).output.strip()
        except InstallFailed as failed:
            return BuildAnswer(BuildStatus.UNTESTABLE, failed.reason, str(failed))
        return BuildAnswer(BuildStatus(said))

    culprit = find_culprit_by_building(commits, ask)
    boundary = culprit.boundary
    assert boundary is not None
    assert boundary.before is not None
    assert boundary.after is not None
    assert (boundary.before.subject[:1], boundary.after.subject[:1]) == ("3", "5")
    assert [(one.item.subject[:1], one.reason) for one in boundary.between] == [("4", "build-failed")]
    assert culprit.commit is None, "a range has no culprit"
    assert len((tmp_path / "cache" / "built" / "tree" / "log").read_text().splitlines()) > 1, (
        "all commits share one tree"
    )


@pytest.mark.parametrize(("command", "error", "words"), [
    ("exit 125", InstallFailed, "skipped"),
    ("echo no compiler >&2; false", InstallFailed, "no compiler"),
    ("true", InstallFailed, "can't be imported"),
    ("no-such-command-at-all", MachineError, "correct it"),
])  # fmt: skip
def test_a_failed_build_command_is_reported(
    tmp_path: Path, span: tuple[History, CommitRange], command: str, error: type[Exception], words: str
) -> None:
    history, commits = span
    with pytest.raises(error, match=words), builder(history, tmp_path, command).built(commits.base):
        pass
